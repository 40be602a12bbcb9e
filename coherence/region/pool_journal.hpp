// PoolJournal: what happened to the pool since its last save that memory knows and the durable copy does not, in a file
// beside that copy: <durable path>.journal.  A start that has lost the memory reads it.
//
// pool.journal-before-effect: An entry is on the disk before what it says has an effect that anybody sees.  So a torn
//     entry at the end, of a process that died or of a power loss, says of nothing that has happened, and is cut off.
// pool.journal-until-saved: An entry names the pool and the number of the save that was the pool's last (`saves`).  It
//     counts until a later save is there; then it is forgotten, and a process that meets it before passes over it.
// pool.journal-failed-sync: When a sync of the file has failed, nothing of the file is believed any more: a later sync
//     may succeed, and the disk lacks what was written, or has what was cut off.  The entries before go into a new
//     file, which takes the name.  If that fails, too, the process ends, and so does its node.
// pool.journal-version-refused: An entry of a later version is no torn end: nothing is cut off, nothing is appended,
//     and the journal is refused (kIncompatible).
//
// What entries say is their authors' business (recovery/restart_journal.hpp).
//
//   auto journal = PoolJournal::open(pool, PoolJournal::kTry, &problem);
//   if (journal) GCL_TRY((*journal)->append(kind, bytes, &problem));   // closed, it lets the next one in
#pragma once

#include <sys/file.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "coherence/base/problem.hpp"
#include "coherence/base/result.hpp"
#include "coherence/region/memory_file.hpp"
#include "coherence/region/since_save.hpp"

namespace coherence {

class Pool;

class PoolJournal {
 public:
  enum Patience : int { kWait = 0, kTry = LOCK_NB };
  static constexpr uint32_t kMemoryNode = 1;  // the kind of MemoryNodeAdded; those from 16 on are of the layers above
  struct MemoryNodeAdded {                    // the newest one of a number counts
    uint64_t number, pages_bytes;
  };

  // For one process at a time; any process that has the pool open.  REQUIRES: the pool has a durable path.  kBusy: with
  // kTry, another process has it; kNoSpace, kSystem, kIncompatible.
  static Result<std::unique_ptr<PoolJournal>> open(Pool&, Patience, Problem*);
  // Durable when it returns.  After an error (kNoSpace, kSystem) there is no such entry (pool.journal-failed-sync).
  Status append(uint32_t kind, std::span<const std::byte> bytes, Problem*);

  // Visits the entries, in order, that count for the copy of that pool with that number of saves.  `visit` ends the
  // walk with an error.  No entries is no error.  kSystem; kCorrupt: an entry that is not the last is damaged;
  // kIncompatible.
  using Visit = std::function<Status(uint32_t kind, std::span<const std::byte> bytes)>;
  static Status visit(const char* durable_path, uint64_t pool_id, uint64_t saves, const Visit&, Problem*);
  // Replaces the journal by what `keep` makes of its entries: it may give one another kind and other bytes.  Entries
  // that do not count (`visit`) are left out.  By rename, so there is one at any moment. kBusy: another process has it;
  // as append(), and kCorrupt, kIncompatible.
  using Keep = std::function<void(uint32_t* kind, std::vector<std::byte>* bytes)>;
  static Status rewrite(const char* durable_path, uint64_t pool_id, uint64_t saves, const Keep& keep, Problem*);

 private:
  PoolJournal(int fd, const char* durable_path, const Pool& pool);
  Status find_end(Problem*);
  Status begin_anew(Problem*);

  const BesideCopy path_;
  const File file_;  // begin_anew() gives its descriptor another file
  const uint64_t pool_id_, saves_;
  uint64_t end_ = 0;
};

}  // namespace coherence

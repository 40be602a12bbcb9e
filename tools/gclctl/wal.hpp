// WalReader: reads the write-ahead log of a data directory, of a server that runs or not, for its records of gcl: what
// pg_waldump, which does not know this resource manager, shows as a name without contents.
//
// The format is PostgreSQL 15's (access/xlogrecord.h, access/xlog_internal.h).  Reading ends where the log does: at the
// first record that is not whole, or does not follow the one before.  Behind a record that a crash has cut off it goes
// on where the server did.
//
// gclctl.hole-is-no-end: A log whose end no crash explains has lost something, and is refused.  A server begins a
//     segment when all before it are on the disk, and notes a checkpoint when its record is.  So there is a hole where
//     the log ends before its server's last checkpoint, or in a segment that is not its last.  (A record that a loss of
//     power has torn is in the last one, if only with its end: there the server goes on.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>

namespace gclctl {

namespace fs = std::filesystem;

// Of gcl, as extension/pg/runtime/wal.cpp writes them.
constexpr uint8_t kResourceManager = 150;
constexpr uint8_t kMiniTransaction = 0x00, kNote = 0x20, kKindMask = 0xf0;

struct WalRecord {
  uint64_t lsn;  // where it begins
  uint32_t xid;
  uint8_t rmgr, info;
  uint32_t crc;
  std::span<const std::byte> data;  // its main data; 8-aligned
};

class WalReader {
 public:
  // At the oldest segment of the newest timeline in `data`/pg_wal.  Fails if it cannot be read, or is of another
  // version.
  explicit WalReader(const fs::path& data);
  ~WalReader();
  WalReader(const WalReader&) = delete;
  // Where the oldest segment begins; 0: there is no log.
  uint64_t first() const;
  // Goes on at that position.  REQUIRES: a record begins there, or a page.
  void to(uint64_t position);
  // The next record, until the next call; false: the log ends.
  bool next(WalRecord*);
  uint64_t end() const;    // of the last record that was read; 0: none
  bool has_ended() const;  // as far as was read
  // Where there is a hole (gclctl.hole-is-no-end); nullopt: the log has not ended, or ends as it may.  Its server may
  // be writing on.
  std::optional<uint64_t> hole();
  // What was read from `position` on is on the disk then, whether or not its server has seen to that.  Fails if it
  // cannot be.
  void sync(uint64_t position) const;

 private:
  class Log;
  std::unique_ptr<Log> log_;
};

// Visits all records from the oldest segment in `data`/pg_wal on.  Returns where the log ends; 0: there is none.
// Fails if it cannot be read, or is of another version.
uint64_t visit_wal(const fs::path& data, const std::function<void(const WalRecord&)>& visit);

}  // namespace gclctl

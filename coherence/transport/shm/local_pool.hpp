// LocalPool: the pool of one machine as files: made, opened, looked at, saved, given more memory nodes, made again
// after a loss of memory.  For the transport of one machine, and for tools.  Each does for all memory nodes what
// region_file.hpp does for one, under the pool's lock file, and asks whether nodes are in the pool.
//
//   Problem problem;
//   auto pool = LocalPool::open({.path = "/dev/shm/p", .durable_path = "/data/p", .compatibility = lines}, &problem);
#pragma once

#include <cstdint>
#include <memory>

#include "coherence/base/problem.hpp"
#include "coherence/base/result.hpp"
#include "coherence/pool/pool.hpp"

namespace coherence {

class MappedPool;
struct PoolHeader;

class LocalPool {
 public:
  // Makes a new pool file, zero-filled, and its durable copy if a durable path is given (so that a pool that was never
  // started survives a reboot).  kExists, kNoSpace, kSystem.
  static Result<std::unique_ptr<Pool>> create(const PoolFiles&, const PoolSpec&, Problem*);
  // Opens the pool; when tmpfs has lost it, loads it from the durable file.  kNotFound, kIncompatible, kFenced (not
  // closed cleanly), kBusy (it is served over a network), kNoSpace, kCorrupt, kSystem.  Safe against other servers that
  // open, save or create it meanwhile.
  static Result<std::unique_ptr<Pool>> open(const PoolFiles&, Problem*);
  // The same for the process that alone serves the pool to nodes over a network, as long as the Pool lives: then others
  // do not open it (kBusy).  It has memory node 0's file, and asks for no other.  kBusy: another process does, or nodes
  // of this machine are in it.
  static Result<std::unique_ptr<Pool>> serve(const PoolFiles&, Problem*);
  // For tools: what the tmpfs files say, or the durable ones if there are none, without joining.
  enum class Condition : uint8_t {
    kClean,
    kInUse,
    kUnclean,
    kAbsent,
    kDamaged,   // a file is missing, unreadable, cut short, or another pool's
    kForeign,   // made for a server that differs, of another format, or its nodes have another protocol
    kUnsaved,   // clean in memory, and not in the durable copy (pool.failed-save-harmless)
    kOrphaned,  // in memory, and all of its nodes are dead: the first that joins repairs it (repair.alone)
  };
  static Condition inspect(const PoolFiles&, Problem*);
  // Writes the durable copy of a clean pool once more (pool.failed-save-harmless).  Errors as open(); kBusy: it is in
  // use.
  static Status save_again(const PoolFiles&, Problem*);
  // A pool that memory has lost while it was in use is made again (pool.made-beside), by one process that has the
  // pool's lock file all the while.  First its copy as of the last save comes into memory, as a pool of its own, with
  // this path, clean.  The lost pool's files are as they were.  *whole: a newer copy was whole, and not in its place
  // yet (pool.saved-beside): now it is, and nothing is left to do.  Errors as open().
  struct NextCopy {  // pool.saved-beside
    explicit NextCopy(const char* durable_path);
    char text[560];
  };
  struct RestartPath {
    explicit RestartPath(const char* path);
    char text[560];
  };
  static Status begin_restart(const PoolFiles& lost, bool* whole, Problem*);
  // That pool is saved, and takes the lost one's place, in memory and on the disk.  REQUIRES: no process is in it.
  // Incarnations up to this one have been.  Errors as save_again(); after them it may be begun again.
  static Status end_restart(const PoolFiles& lost, uint64_t incarnations, Problem*);
  // Adds a memory node with that many bytes of pages, whether or not nodes are in the pool (pool.counted-last).  The
  // durable copy of a clean pool gets it at once.  After an error nothing is added: errors as open(); kBusy: another
  // one is being added; kTooLarge: the pool has kMemoryNodesMax of them; kNoSpace: no memory for it.
  static Result<AddedMemoryNode> add_memory_node(const PoolFiles&, uint64_t pages_bytes, Problem*);

 private:
  friend class MappedPool;
  enum class Use : uint8_t { kOpen, kServe };
  static Result<std::unique_ptr<MappedPool>> open_locked(const PoolFiles&, Problem*,
                                                         Use = Use::kOpen);  // REQUIRES: the lock file held
  static Status lock_file(int fd, const char* path, Use, Problem*);
  static bool is_saved(const PoolHeader& in_memory, const char* durable_path, Problem*);
  enum class Which : uint8_t { kClean, kAny };  // of copies: the last one before the pool was in use, too
  enum class Parts : uint8_t { kAll, kFirst };  // of the memory nodes
  static Status load(const PoolFiles&, const char* to_path, Which, Parts, Problem*);
  static Status add_journaled(const PoolFiles&, const PoolHeader& lost, Problem*);
  static Status adopt_next(const PoolFiles&, const PoolHeader& lost, bool* adopted, Problem*);
  // The files of a copy, or of a pool, get other names, memory node 0's last (pool.memory-node-zero-decides).  What is
  // not there has its new name already.
  static Status rename_parts(const char* from, const char* to, uint32_t memory_nodes, Problem*);
};

}  // namespace coherence

// What a recording of a directory looks like: a header, then records, each of one change of a file or a name below
// ROOT.
//
//   DIR/initial/    the directory as it was when recording began; all of it is taken as durable
//   DIR/names       the inode of each file there
//   DIR/log         Header, then records; mapped by all processes that are recorded
//
// A record's number is its place among all of them.  A change is made and recorded under one lock, so numbers are the
// order of changes.  A sync is recorded when it has returned, with the number of changes there were when it was called:
// only those are durable (power.durable-when-told).
#pragma once

#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace power {

inline constexpr uint64_t kLogBytes = uint64_t{4} << 30;  // sparse
inline constexpr uint64_t kFirstRecord = 4096;
inline constexpr const char* kLogVariable = "GCL_POWER_LOG";  // the log's path, for the recorded processes

// In `log`, at 0.  power.py reads and writes the first words.
struct Header {
  static constexpr uint64_t kMagic = 0x31'5245'574f'5047;  // "GPOWER1"
  uint64_t magic;
  std::atomic<uint64_t> count;   // records
  std::atomic<uint64_t> end;     // where the next one goes
  std::atomic<uint32_t> paused;  // changes wait: processes may be killed, none of them is inside of one
  std::atomic<uint32_t> inside;  // one is
  std::atomic<uint32_t> broken;  // Broken
  uint32_t sync_us;              // how long a sync takes, about
  pthread_mutex_t mutex;
  char root[512];
};
static_assert(offsetof(Header, count) == 8 && offsetof(Header, paused) == 24 && offsetof(Header, broken) == 32);
static_assert(sizeof(Header) <= kFirstRecord);

// Why a recording is worth nothing.
enum class Broken : uint32_t { kNo, kDiedInside, kLogFull, kFromOutside, kSymlink };

enum class Kind : uint16_t {
  kOpen,    // path, inode; at: kCreated, kTruncated
  kWrite,   // inode, at, length, then the bytes
  kZero,    // the same, and the bytes are zero
  kSize,    // inode; at: the new size
  kRename,  // path, other path
  kLink,    // path, other path: a further name
  kUnlink,  // path
  kMkdir,   // path, inode
  kRmdir,   // path
  kSync,    // inode, of a file or a directory; at: changes there were when it was called
  kSyncAll  // at: likewise
};

inline constexpr uint64_t kCreated = 1, kTruncated = 2;  // of kOpen

struct Record {
  uint32_t bytes;  // with all that follows; a multiple of 8
  Kind kind;
  uint16_t path_bytes, other_bytes;
  uint16_t unused;
  uint32_t pid;
  uint64_t inode, at, length;
};
static_assert(sizeof(Record) == 40);

}  // namespace power

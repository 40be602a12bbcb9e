// Pool: the shared memory all primaries map (the shm transport's memory node 0), and its header.
//
// P1. The file is fallocated in full before anybody maps it: a full tmpfs is an error here, not a SIGBUS later.
// P2. The header names everything that must agree (format version, block size, the server's identity lines); a primary
//     that differs is refused, and the problem names both values.
// P3. A pool is `clean` when no node is in it and the last one left in order.  One that is neither clean nor in use by
//     living nodes died uncleanly: opened by nobody (until repair exists).
// P4. The durable copy is written by the last node that leaves, is marked "in use" before the first one joins, and so
// is
//     never mistaken for current after a crash of the machine.
// P5. Latch words are never persisted: a clean pool's are all free (verified when saved).
//
//   Problem problem;
//   auto pool = Pool::open({.path = "/dev/shm/p", .durable_path = "/data/p", .identity = lines}, &problem);
#pragma once

#include <cstdint>
#include <memory>

#include "coherence/base/ids.hpp"
#include "coherence/base/result.hpp"
#include "coherence/latch/latch_word.hpp"

namespace coherence {

// A sentence for a human: what is wrong, with both values when two differ.
struct Problem {
  char text[480] = "";
  [[gnu::format(printf, 3, 4)]] Errc set(Errc error, const char* format, ...);  // returns `error`, sets the text
  [[gnu::format(printf, 2, 3)]] void write(const char* format, ...);
};

inline constexpr int kRegionsMax = 16;
inline constexpr int kRegionNodeTable = 0;   // coherence
inline constexpr int kRegionLatchWords = 1;  // coherence
inline constexpr int kRegionPages = 2;       // bufmgr; its size sets the number of latch words
// Regions 3.. belong to the layers above; zero-filled at creation.

struct RegionExtent {
  PoolAddress at;
  uint64_t bytes = 0;
};

struct PoolSpec {
  uint32_t nodes_max = 8;
  uint64_t region_bytes[kRegionsMax] = {};  // [0] and [1] are computed
  const char* identity = "";                // lines "name=value\n" that every joining server must repeat exactly
};

struct PoolFiles {
  const char* path = nullptr;          // in tmpfs or hugetlbfs
  const char* durable_path = nullptr;  // null: nothing is saved or loaded
  const char* identity = "";
};

class NodeTable;

class Pool {
 public:
  // Makes a new pool file, zero-filled, and its durable copy if a durable path is given (so that a pool that was never
  // started survives a reboot).  kExists, kNoSpace, kSystem.
  static Result<std::unique_ptr<Pool>> create(const PoolFiles&, const PoolSpec&, Problem*);
  // Opens the pool; when tmpfs has lost it, loads it from the durable file.  kNotFound, kIncompatible, kFenced (not
  // closed cleanly), kNoSpace, kCorrupt, kSystem.  Safe against other servers that open, save or create it meanwhile.
  static Result<std::unique_ptr<Pool>> open(const PoolFiles&, Problem*);
  // For tools: what the durable or the tmpfs file says, without joining.  Same errors.
  enum class Condition : uint8_t { kClean, kInUse, kUnclean, kAbsent };
  static Condition inspect(const PoolFiles&, Problem*);
  ~Pool();
  Pool(const Pool&) = delete;

  RegionExtent region(int index) const;
  uint64_t pages() const;
  uint32_t nodes_max() const;
  uint64_t pool_id() const;  // random; written into what refers to this pool
  const char* path() const { return path_; }
  const char* durable_path() const { return durable_path_[0] ? durable_path_ : nullptr; }
  NodeTable& table() const { return *table_; }
  std::byte* at(PoolAddress a) const { return base_ + a.offset(); }
  uint64_t bytes() const { return bytes_; }

  PoolAddress page_address(PageId p) const { return pages_at_ + p.number() * kPageSize; }
  // Neighbouring pages' words lie in different CPU lines (M4).
  PoolAddress latch_address(PageId p) const {
    uint64_t n = p.number();
    return words_at_ + ((n % word_rows_) * 8 + n / word_rows_) * sizeof(LatchWord);
  }
  // The word as it is now; for views, tests and tools.
  LatchWord peek_latch(PageId p) const;

 private:
  friend class Node;
  Pool() = default;
  Status map(int fd, Problem*);
  Status save(Problem*);  // to the durable path; REQUIRES: no node in it, the lock file held
  Status mark_durable(bool in_use, Problem*);
  static Status load(const PoolFiles&, Problem*);

  std::byte* base_ = nullptr;
  uint64_t bytes_ = 0;
  PoolAddress pages_at_, words_at_;
  uint64_t word_rows_ = 1;
  NodeTable* table_ = nullptr;
  char path_[512] = "";
  char durable_path_[512] = "";
};

}  // namespace coherence

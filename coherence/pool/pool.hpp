// Pool: the shared memory of all primaries, as one process knows it: which memory nodes and regions there are, and
// where pages and latch words lie.  Its words are reached by verbs (transport/memory.hpp), and its members by
// Membership. Nothing here says where a memory node is in this process's memory: that is MappedPool's, the pool of one
// machine.
//
// pool.identity-must-agree: the header names everything that must agree (format version, block size, the server's
// identity lines).  A primary that differs is refused, and the problem names both values.
// pool.clean-or-refused: a pool is `clean` when no node is in it and the last one left in order.  A pool that is
// neither clean, nor in use by living nodes, nor repaired (repair.alone) is opened by no process.
// pool.words-never-saved: latch words are never persisted: a clean pool's are all free (verified when it is saved).
//
// The files, the durable copy, and memory nodes that come later: pool.* in coherence/rules.md.
//
//   Problem problem;
//   auto pool = Pool::open({.path = "/dev/shm/p", .durable_path = "/data/p", .identity = lines}, &problem);
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "coherence/base/ids.hpp"
#include "coherence/base/problem.hpp"
#include "coherence/base/result.hpp"
#include "coherence/latch/latch_word.hpp"
#include "coherence/pool/page_places.hpp"

namespace coherence {

inline constexpr int kRegionsMax = 16;
inline constexpr int kRegionNodeTable = 0;   // coherence
inline constexpr int kRegionLatchWords = 1;  // coherence
inline constexpr int kRegionPages = 2;       // bufmgr; its size sets the number of latch words
// Regions 3.. belong to the layers above; zero-filled at creation; in memory node 0 only.

struct RegionExtent {
  PoolAddress at;
  uint64_t bytes = 0;
};

struct PoolSpec {
  uint32_t nodes_max = 8;
  uint64_t region_bytes[kRegionsMax] = {};  // of memory node 0; [0] and [1] are computed
  uint32_t memory_nodes = 1;
  uint64_t further_pages_bytes = 0;  // of the pages of each memory node but 0
  const char* identity = "";         // lines "name=value\n" that every joining server must repeat exactly
  bool repairs_deaths = false;       // else a death fences the pool
  bool records_deaths = false;       // repair.recorded-first; REQUIRES: who opens it gives a durable path
};

struct PoolFiles {
  const char* path = nullptr;          // in tmpfs or hugetlbfs; memory node 0's
  const char* durable_path = nullptr;  // likewise; null: nothing is saved or loaded
  const char* identity = "";
};

class MappedPool;
struct Damage;
struct PoolHeader;

class Pool {
 public:
  // Makes a new pool file, zero-filled, and its durable copy if a durable path is given (so that a pool that was never
  // started survives a reboot).  kExists, kNoSpace, kSystem.
  static Result<std::unique_ptr<Pool>> create(const PoolFiles&, const PoolSpec&, Problem*);
  // Opens the pool; when tmpfs has lost it, loads it from the durable file.  kNotFound, kIncompatible, kFenced (not
  // closed cleanly), kNoSpace, kCorrupt, kSystem.  Safe against other servers that open, save or create it meanwhile.
  static Result<std::unique_ptr<Pool>> open(const PoolFiles&, Problem*);
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
  // For tools: what memory node 0's file, in tmpfs or of the durable copy, says of the pool.  kNotFound, kIncompatible
  // (of another format), kCorrupt, kSystem.
  struct Outline {
    uint64_t pool_id;
    uint64_t saves;
    uint32_t memory_nodes;
    uint64_t bytes[kMemoryNodesMax];  // of their files in tmpfs
  };
  static Result<Outline> outline(const char* path, Problem*);
  // For tools: reads all of a durable copy that no process writes meanwhile, and checks each block of it; says so of
  // the last save, also while the copy says "in use".  kCorrupt: what the damage tells, or a file is missing or has the
  // wrong size; kNotFound, kIncompatible (of another format), kSystem.
  static Status verify_saved(const char* durable_path, Damage*, Problem*);
  // Writes the durable copy of a clean pool once more (pool.failed-save-harmless).  Errors as open(); kBusy: it is in
  // use.
  static Status save_again(const PoolFiles&, Problem*);
  // A pool that memory has lost while it was in use is made again (pool.made-beside), by one process that has the
  // pool's lock file all the while.  First its copy as of the last save comes into memory, as a pool of its own, with
  // this path, clean.  The lost pool's files are as they were.  *whole: a newer copy was whole, and not in its place
  // yet (pool.saved-beside): now it is, and nothing is left to do.  Errors as open().
  struct RestartPath {
    explicit RestartPath(const char* path);
    char text[560];
  };
  static Status begin_restart(const PoolFiles& lost, bool* whole, Problem*);
  // That pool is saved, and takes the lost one's place, in memory and on the disk.  REQUIRES: no process is in it.
  // Incarnations up to this one have been.  Errors as save_again(); after them it may be begun again.
  static Status end_restart(const PoolFiles& lost, uint64_t incarnations, Problem*);
  struct Added {
    MemoryNodeId memory_node;
    bool saved;  // false: the pool in memory has it, its durable copy does not; the problem says why
  };
  // Adds a memory node with that many bytes of pages, whether or not nodes are in the pool (pool.counted-last).  The
  // durable copy of a clean pool gets it at once.  After an error nothing is added: errors as open(); kBusy: another
  // one is being added; kTooLarge: the pool has kMemoryNodesMax of them; kNoSpace: no memory for it.
  static Result<Added> add_memory_node(const PoolFiles&, uint64_t pages_bytes, Problem*);
  virtual ~Pool() = default;
  Pool(const Pool&) = delete;

  // Whether the nodes that are in the pool, also dead ones, have the protocol of this process (pool.one-protocol).
  // kIncompatible.  REQUIRES: nobody joins or leaves (Node, or the lock file held).
  virtual Status check_protocol(Problem*) const = 0;
  // --- any thread; a memory node that came later is looked for once in each process, all else is known
  // ----------------
  RegionExtent region(int index) const { return facts_.region[index]; }
  virtual uint32_t memory_nodes() const = 0;  // grows (pool.counted-last)
  uint64_t pages();                           // of all memory nodes
  // 0: there is no such memory node, or it cannot be reached from here.
  uint64_t pages(MemoryNodeId n) { return reach(n).ok() ? places_[n.value].pages : 0; }
  // Whether there is such a page; any number may be asked for.  kNotFound; kCorrupt, kSystem: its memory node is there
  // and cannot be reached from here.
  Status look_for(PageId p) {
    if (p.raw >> 48 != 0) return Errc::kNotFound;
    GCL_TRY(reach(p.node()));
    return p.number() < places_[p.node().value].pages ? Status() : Errc::kNotFound;
  }
  bool has(PageId p) { return look_for(p).ok(); }
  // Where a memory node has its words and pages, for a process that looks at all of them.  Errors as look_for().
  Result<PagePlaces> places(MemoryNodeId n) {
    GCL_TRY(reach(n));
    return PagePlaces(places_[n.value]);
  }
  uint32_t nodes_max() const { return facts_.nodes_max; }
  uint64_t pool_id() const { return facts_.pool_id; }  // random; written into what refers to this pool
  virtual uint64_t saves() const = 0;                  // of durable copies
  const char* path() const { return path_; }
  const char* durable_path() const { return durable_path_[0] ? durable_path_ : nullptr; }

  // REQUIRES: has(p), asked by this node.
  PoolAddress page_address(PageId p) { return places_of(p).page(p.number()); }
  PoolAddress latch_address(PageId p) { return places_of(p).word(p.number()); }
  // The word as it is now; for views, tests and tools.
  virtual LatchWord peek_latch(PageId p) = 0;

  // What only the transport of one machine uses (pool.mapped-by-its-own), and tests; null: another one's.
  virtual MappedPool* mapped() noexcept { return nullptr; }

 protected:
  explicit Pool(const PoolFiles&);
  struct Facts {  // as the pool was made
    uint32_t nodes_max = 0;
    uint64_t pool_id = 0;
    RegionExtent region[kRegionsMax];
  };
  void set_facts(const Facts& facts) { facts_ = facts; }
  // Of a memory node that is not known yet: calls set_places().  kNotFound: the pool has no such one; kCorrupt,
  // kSystem.
  virtual Status find_memory_node(MemoryNodeId, Problem*) = 0;
  void set_places(MemoryNodeId n, const PagePlaces& places) {
    places_[n.value] = places;
    known_[n.value].store(true, std::memory_order_release);  // pairs with knows()
  }

 private:
  friend class MappedPool;
  struct NextCopy {  // pool.saved-beside
    explicit NextCopy(const char* durable_path);
    char text[560];
  };
  bool knows(MemoryNodeId n) const noexcept { return known_[n.value].load(std::memory_order_acquire); }
  Status reach(MemoryNodeId n) {
    if (n.value < kMemoryNodesMax && knows(n)) return {};
    Problem ignored;
    return find_memory_node(n, &ignored);
  }
  // Ends the process if it cannot be found: a batch cannot be left undone.
  void must_find(MemoryNodeId) noexcept;
  const PagePlaces& places_of(PageId p) {
    if (!knows(p.node())) must_find(p.node());  // another process of the node asked for the page
    return places_[p.node().value];
  }
  static Status make(const PoolFiles&, const PoolHeader& first, const PoolSpec&, Problem*);
  static void lay_out(const PoolSpec&, uint32_t k, PoolHeader*);  // the parts and the size of memory node K
  static Status finish_file(int fd, const char* unfinished, const char* path, const PoolHeader&, Problem*);
  static Status check_parts(const char* path, const PoolHeader& first, bool saved, Problem*);
  static Result<std::unique_ptr<MappedPool>> open_locked(const PoolFiles&, Problem*);  // REQUIRES: the lock file held
  static bool is_saved(const PoolHeader& in_memory, const char* durable_path, Problem*);
  enum class Which : uint8_t { kClean, kAny };  // of copies: the last one before the pool was in use, too
  static Status load(const PoolFiles&, const char* to_path, Which, Problem*);
  static Status add_journaled(const PoolFiles&, const PoolHeader& lost, Problem*);
  static Status adopt_next(const PoolFiles&, const PoolHeader& lost, bool* adopted, Problem*);
  // The files of a copy, or of a pool, get other names, memory node 0's last (pool.memory-node-zero-decides).  What is
  // not there has its new name already.
  static Status rename_parts(const char* from, const char* to, uint32_t memory_nodes, Problem*);

  Facts facts_;
  PagePlaces places_[kMemoryNodesMax];  // of those that are known
  std::atomic<bool> known_[kMemoryNodesMax] = {};
  char path_[512] = "";
  char durable_path_[512] = "";
};

}  // namespace coherence

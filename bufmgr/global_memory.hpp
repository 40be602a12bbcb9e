// Coherent lines for a data structure of your own, without PostgreSQL: the interface of the SELCC paper (Table 1:
// Allocate, Free, SLock, XLock and their unlocks, Atomic), with the locks as guards.
//
//   Problem problem;
//   GlobalMemory::create("/dev/shm/mine", {}, &problem);                              // once
//   auto memory = GlobalMemory::join("/dev/shm/mine", {.node = {1}}, &problem);       // a process is a node
//   GlobalThread thread(**memory);                                                    // and has threads
//
//   PageId line = *thread.allocate();
//   {
//     XLock lock(thread, line);                               // alone, in the whole cluster
//     if (!lock) return lock.error();
//     lock.set<uint64_t>(0, lock.get<uint64_t>(0) + 1);
//   }                                                         // from here on all threads see it
//   {
//     SLock lock(thread, line);                               // no thread changes it; others read, too
//     if (lock) use(lock.get<uint64_t>(0));
//   }
//   thread.compare_and_swap(kRoot, 0, line.raw);              // a word of the pool: one round trip, never cached
//
// A line is a page without its header: kLineBytes bytes, zero when it is allocated; offsets count from 0.
//
// bufmgr.sequentially-consistent: A lock sees all that was changed under locks of the line that ended before, by any
//     thread of any node.  Words are so among themselves, and with lines as far as a lock was held in between.
// bufmgr.one-lock-per-thread: A thread holds one lock at a time, and none while it allocates or frees (VERIFY), so no
//     threads wait in a circle.
// bufmgr.unclean-end-fences: A node that leaves (the destructor) takes nothing with it.  A node that ends otherwise may
//     have taken changes with it, and fences the pool: every call of every node says kFenced from then on.
//
// Errors of locks and copies: kFenced; kNotFound, the pool has no such line; kNoMemory, the process has none, or no
// descriptor, to reach a node that has joined: free some, and call again.  Nothing here waits but for peers, and a
// peer that is gone is noticed (bufmgr.unclean-end-fences).
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <type_traits>

#include "bufmgr/buffer_pool.hpp"
#include "bufmgr/mini_transaction.hpp"

namespace bufmgr {

inline constexpr uint32_t kLineBytes = kPageSize - kPageBody;
inline constexpr uint32_t kUserWords = 512;  // of a pool, zero when it is made

struct GlobalMemoryOptions {
  uint64_t bytes = 64 << 20;  // of the pool, its housekeeping included
  uint32_t nodes_max = kNodesDefault;
  uint32_t memory_nodes = 1;
};

struct GlobalNodeOptions {
  NodeId node;                // below nodes_max; one process each
  uint32_t frames = 1024;     // lines that it keeps
  uint32_t threads_max = 32;  // at a time
};

// A node of a pool, with the two threads that every node needs.  Safe from any thread.
class GlobalMemory {
 public:
  // A new pool in a new directory, which should lie in memory.  kExists: it is there; kNoSpace, kSystem.
  static Status create(const char* directory, const GlobalMemoryOptions&, Problem*);
  // kBusy: the node is there already; kNotFound, kCorrupt, kIncompatible: no pool of this version; kFenced, kSystem.
  static Result<std::unique_ptr<GlobalMemory>> join(const char* directory, const GlobalNodeOptions&, Problem*);
  // The directory and all that is in it.  REQUIRES: no node is left that lives.
  static void remove(const char* directory);
  // Leaves the pool.  REQUIRES: no thread is left.
  ~GlobalMemory();
  GlobalMemory(const GlobalMemory&) = delete;

  BufferPool& pool();

 private:
  friend class GlobalThread;
  struct Parts;
  class OncePerProcess;
  explicit GlobalMemory(std::unique_ptr<Parts>);
  std::unique_ptr<Parts> parts_;
};

// What a thread needs; used by that thread alone.
class GlobalThread {
 public:
  explicit GlobalThread(GlobalMemory&);  // VERIFY: not more than threads_max
  ~GlobalThread();
  GlobalThread(const GlobalThread&) = delete;

  // kNoSpace, kFenced.
  Result<PageId> allocate();
  // REQUIRES: no thread uses it any more.  kCorrupt: it is not allocated.
  Status free(PageId line);
  // A part of a line as it was at one moment, without a lock if the line is here.
  Status copy(PageId line, uint32_t offset, void* to, uint32_t bytes);

  // Words, by number.  fetch_add and compare_and_swap return what was there before.  kFenced: it is not known whether
  // they were done (transport.unknown-cuts-off).
  Result<uint64_t> load(uint32_t word);
  Result<uint64_t> fetch_add(uint32_t word, uint64_t addend);
  Result<uint64_t> compare_and_swap(uint32_t word, uint64_t expected, uint64_t desired);

 private:
  friend class SLock;
  friend class XLock;
  coherence::PoolAddress address_of(uint32_t word) const;
  GlobalMemory& memory_;
  BufferPool& pool_;
  std::unique_ptr<Session> session_;
};

// What both locks are.
template <class Guard>
class LineLock {
 public:
  LineLock(const LineLock&) = delete;
  explicit operator bool() const { return guard_.ok(); }
  coherence::Errc error() const { return guard_.error(); }
  const std::byte* bytes() const { return guard_->bytes() + kPageBody; }
  template <class T>
  T get(uint32_t offset) const {
    static_assert(std::is_trivially_copyable_v<T>);
    VERIFY(offset <= kLineBytes && sizeof(T) <= kLineBytes - offset);
    T value;
    std::memcpy(&value, bytes() + offset, sizeof value);
    return value;
  }

 protected:
  LineLock() = default;
  Result<Guard> guard_{coherence::Errc::kWouldBlock};  // until the constructor of the lock has it
};

class [[nodiscard]] SLock : public LineLock<SharedGuard> {
 public:
  SLock(GlobalThread&, PageId line);
};

class [[nodiscard]] XLock : public LineLock<ExclusiveGuard> {
 public:
  XLock(GlobalThread&, PageId line);
  ~XLock();
  template <class T>
  void set(uint32_t offset, const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    write(offset, &value, sizeof value);
  }
  void write(uint32_t offset, const void* from, uint32_t bytes);

 private:
  MiniTransaction change_;
  bool changed_ = false;
};

}  // namespace bufmgr

// HoldTable: which transactions of this node hold which pages until their end, and in which mode.  It lies in memory
// that all processes of the node map.  coherence knows how many hold a page, and keeps other nodes away; this knows
// who they are, and keeps the node's own transactions away from each other.
//
// serializable.table-says-who: While a page is held, the table has an entry of each holder, and coherence names one of
//     them to other nodes.  Both change together, under the lock of the page's bucket: so who has to wait is always
//     told a transaction that holds the page, or held it a moment ago, and deadlocks are found whoever is named.
// serializable.enter-under-latch: An entry is made under the page's latch in the entry's mode.  So under an exclusive
//     latch no entry comes, and who has looked there at the others' entries need not look again.
// serializable.mark-under-bucket: That a transaction's holds are given up is marked first (Holder::take), then its
//     entries are removed, bucket by bucket.  An entry is made under the bucket's lock, and not behind the mark.  So
//     an entry was there when its bucket was looked at, and is removed, or it is never made.
// serializable.table-bounds-frames: A page that is held keeps its frame.  The table has entries for half of the frames,
//     so the other half is there for everything else.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "bufmgr/base/page.hpp"
#include "coherence/base/os.hpp"
#include "coherence/base/verify.hpp"
#include "extension/engine/serializable/holder.hpp"
#include "extension/engine/txn/txn_id.hpp"

namespace engine {

using coherence::PageId;

class HoldTable {
 public:
  static constexpr uint32_t entries_for(uint32_t frames) { return frames / 2; }
  static size_t bytes_for(uint32_t entries, uint32_t sessions);
  // `memory` is 64-byte aligned, zeroed, and has bytes_for(entries, sessions) bytes.  `fence`:
  // coherence::Node::fence_word(), in the process that the others are forked from.
  static HoldTable* create(void* memory, uint32_t entries, uint32_t sessions, const std::atomic<uint32_t>* fence);

  uint32_t sessions() const { return sessions_; }
  Holder& holder(uint32_t session) {
    VERIFY(session < sessions_);
    return reinterpret_cast<Holder*>(this + 1)[session];
  }

  enum class Entered : uint8_t { kNow, kBefore, kHeld, kFull, kGivenUp };
  // The transaction holds the page, if it may; `count` is called if it had not in that mode.  kHeld: *other does.
  // kGivenUp: `of`, its session, has lost what it held.  REQUIRES: the page's latch in that mode.
  template <class Count>
  Entered enter(PageId page, const Holder& of, TxnId by, bool exclusive, TxnId* other, Count count) {
    Bucket& bucket = bucket_of(page);
    coherence::SpinGuard guard(bucket.spin, fence_);
    if (of.word() == HolderWord::of(by, HolderState::kGivenUp)) return Entered::kGivenUp;  // mark-under-bucket
    const auto session = uint16_t(&of - &holder(0));
    const Entered entered = enter_locked(bucket, page, session, by, exclusive, other);
    if (entered == Entered::kNow) count();
    return entered;
  }
  // It holds the page no longer.  `uncount(shared, exclusive, next)`: in which modes it had, and who holds the page
  // still.
  template <class Uncount>
  void leave(PageId page, TxnId by, Uncount uncount) {
    Bucket& bucket = bucket_of(page);
    coherence::SpinGuard guard(bucket.spin, fence_);
    TxnId next{};
    if (const uint8_t modes = leave_locked(bucket, page, by, &next); modes != 0)
      uncount((modes & kShared) != 0, (modes & kExclusive) != 0, next);
  }
  // It holds no page any longer; leave()'s `uncount` is called with the page before, and `served(page)` without a lock
  // behind each.  REQUIRES: its holds are marked as given up.  May be called again, and by several at once.
  template <class Uncount, class Served>
  void leave_all(TxnId by, Uncount uncount, Served served) {
    for (uint32_t b = 0; b < buckets_; ++b) {
      for (;;) {
        uint64_t page = 0;
        {
          coherence::SpinGuard guard(bucket()[b].spin, fence_);
          if (!first_of(bucket()[b], by, &page)) break;
          TxnId next{};
          const uint8_t modes = leave_locked(bucket()[b], PageId{page}, by, &next);
          uncount(PageId{page}, (modes & kShared) != 0, (modes & kExclusive) != 0, next);
        }
        served(PageId{page});
      }
    }
  }
  // A transaction but `self` that holds the page; invalid: there is none.
  TxnId other_holder(PageId page, TxnId self);
  // Whether somebody waits for one that holds the page (Holder::wanted()).
  bool holder_is_wanted(PageId page);

  uint32_t entries() const { return entries_; }
  // Entries in use, as they were a moment ago.
  uint32_t used() const { return used_.load(std::memory_order_relaxed); }

 private:
  static constexpr uint8_t kShared = 1, kExclusive = 2;
  static constexpr uint32_t kNone = ~uint32_t{0};
  struct Entry {
    uint64_t page;
    TxnId by;
    uint32_t next;
    uint8_t modes;
    uint16_t session;
  };
  struct Bucket {
    std::atomic<uint32_t> spin;
    uint32_t first;
  };
  Entered enter_locked(Bucket& bucket, PageId page, uint16_t session, TxnId by, bool exclusive, TxnId* other);
  uint8_t leave_locked(Bucket& bucket, PageId page, TxnId by, TxnId* next);
  Bucket& bucket_of(PageId page) { return bucket()[(page.raw * 0x9E3779B97F4A7C15ull >> 32) % buckets_]; }
  bool first_of(const Bucket& bucket, TxnId by, uint64_t* page);
  Bucket* bucket() { return reinterpret_cast<Bucket*>(reinterpret_cast<Holder*>(this + 1) + sessions_); }
  Entry* entry() { return reinterpret_cast<Entry*>(bucket() + buckets_); }
  uint32_t take_free();
  void give_back(uint32_t index);

  uint32_t entries_, buckets_, sessions_;
  const std::atomic<uint32_t>* fence_;  // at the same address in all processes
  alignas(64) std::atomic<uint32_t> free_spin_;
  uint32_t free_;
  std::atomic<uint32_t> used_;
};

}  // namespace engine

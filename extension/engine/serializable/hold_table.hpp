// HoldTable: which transactions of this node hold which pages until their end, and in which mode.  It lies in memory
// that all processes of the node map.  coherence knows how many hold a page, and keeps other nodes away; this knows
// which they are, and keeps the node's own transactions away from each other.
//
// serializable.table-says-who: While a page is held, the table has an entry of each holder, and coherence names one of
//     them to other nodes.  Both change together, under the lock of the page's bucket: so a session that has to wait
//     is always told a transaction that holds the page, or held it a moment ago, and deadlocks are found whichever is
//     named.
// serializable.enter-under-latch: An entry is made under the page's latch in the entry's mode.  So under an exclusive
//     latch no entry comes, and a session that has looked there at the others' entries need not look again.
// serializable.mark-under-bucket: That a transaction's holds are given up is marked first (Holder::take), then its
//     entries are removed, bucket by bucket.  An entry is made under the bucket's lock, and not behind the mark.  So
//     an entry was there when its bucket was looked at, and is removed, or it is never made.
// serializable.mark-stays: The mark stands until nothing is entered, whichever process removes it; so a session whose
//     holds are taken away looks through all buckets itself before its transaction is over.  Else the process that
//     takes them could have passed a bucket where a split, which no longer finds the mark, gives parts to nobody.
// serializable.parts-apart: Two transactions of the node hold a page together if no part (holds.parts-of-a-page)
//     that one of them writes is read or written by the other.
// serializable.one-upgrader: Of the transactions of the node that have read parts of a page, one may wait to write such
//     a part.  A second one is refused at once (kUpgrade), if each of them would wait for the other.  A transaction
//     waits from when it was refused until its next request.
// serializable.given-parts-noted: What a transaction is given of a new page (give_parts) its session does not know.  So
//     that is noted in its Holder, under the lock of the bucket of the page that it has it from, as long as it holds
//     that: a session that ends its transaction lets go of all it knows of, and then, while there is a note, of all
//     that the table has.
// serializable.table-bounds-frames: A page that is held keeps its frame.  The table has entries for half of the frames,
//     so the other half is there for everything else.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "bufmgr/base/page.hpp"
#include "bufmgr/page_holds.hpp"
#include "coherence/base/os.hpp"
#include "coherence/base/verify.hpp"
#include "extension/engine/serializable/holder.hpp"
#include "extension/engine/txn/txn_id.hpp"

namespace engine {

using bufmgr::Parts;
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

  enum class Entered : uint8_t { kNow, kBefore, kHeld, kUpgrade, kFull, kGivenUp };
  struct Other {
    TxnId by;
    bool only_reads = false;  // what is asked for
  };
  // The transaction holds those parts of the page, if it may; `count` is called if it had none in that mode.  kBefore:
  // it had these.  kHeld: *other does.  kUpgrade: so does one that waits for this one's end.  kGivenUp: `of`, its
  // session, has lost what it held.  REQUIRES: the page's latch in that mode.
  template <class Count>
  Entered enter(PageId page, const Holder& of, TxnId by, bool exclusive, Parts parts, Other* other, Count count) {
    Bucket& bucket = bucket_of(page);
    coherence::SpinGuard guard(bucket.spin, fence_);
    if (of.word() == HolderWord::of(by, HolderState::kGivenUp)) return Entered::kGivenUp;  // mark-under-bucket
    const auto session = uint16_t(&of - &holder(0));
    bool first = false;
    const Entered entered = enter_locked(bucket, page, session, by, {exclusive, parts}, other, &first);
    if (first) count();
    return entered;
  }
  // All that hold `from` hold the same parts of `to`, and all but `self` are to note that
  // (serializable.given-parts-noted); `count(by, read, write)` is called for each.  False: there are too few entries,
  // and nobody does.  REQUIRES: both pages' exclusive latches; nobody knows `to`.
  template <class Count>
  bool give_parts(PageId from, PageId to, TxnId self, Count count) {
    Bucket* const order[] = {std::min(&bucket_of(from), &bucket_of(to)), std::max(&bucket_of(from), &bucket_of(to))};
    coherence::SpinGuard first(order[0]->spin, fence_);
    std::optional<coherence::SpinGuard> second;
    if (order[0] != order[1]) second.emplace(order[1]->spin, fence_);
    uint32_t copies = kNone;
    if (!copy_entries(from, &copies)) return false;
    while (copies != kNone) {
      const uint32_t index = copies;
      Entry& given = entry()[index];
      copies = given.next;
      if (given.by != self) holder(given.session).note_given_parts();
      given.page = to.raw;
      given.next = bucket_of(to).first;
      bucket_of(to).first = index;
      count(given.by, given.read, given.write);
    }
    return true;
  }
  // It holds the page no longer.  `uncount(shared, exclusive, next)`: in which modes it had, and a transaction that
  // still holds the page.
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

  // How often a statement of this node has waited for a transaction that holds a page, and how many transactions of it
  // have lost their holds: since the node's start.  Cold: a process that counts is about to wait.
  struct Counts {
    std::atomic<uint64_t> waits{0}, given_up{0};
  };
  Counts& counts() { return counts_; }

 private:
  static constexpr uint8_t kShared = 1, kExclusive = 2;
  static constexpr uint32_t kNone = ~uint32_t{0};
  struct Entry {
    uint64_t page;
    TxnId by;
    Parts read, write;
    Parts wants;  // to write, while its holder upgrades()
    uint32_t next;
    uint16_t session;
  };
  struct Wanted {
    bool exclusive;
    Parts parts;
    bool conflicts(const Entry& with) const { return (parts & (with.write | (exclusive ? with.read : 0))) != 0; }
  };
  struct Bucket {
    std::atomic<uint32_t> spin;
    uint32_t first;
  };
  Entered enter_locked(Bucket& bucket, PageId page, uint16_t session, TxnId by, const Wanted& wanted, Other* other,
                       bool* first);
  // For `mine`, which has read parts of the page.  Whether one with whom it conflicts waits for it, too.
  bool meets_upgrader(const Bucket& bucket, const Entry& mine, const Wanted& wanted);
  // Copies of the page's entries, chained, in none of the buckets.  False: there is no room for them.
  bool copy_entries(PageId page, uint32_t* chain);
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
  Counts counts_;
};

}  // namespace engine

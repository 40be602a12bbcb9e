#include "extension/engine/blink/insert.hpp"

#include <algorithm>
#include <type_traits>

#include "extension/engine/blink/erase.hpp"
#include "extension/engine/blink/image.hpp"
#include "extension/engine/blink/scan.hpp"
#include "extension/engine/stop/stop_point.hpp"

namespace engine::blink {
namespace {

using bufmgr::ExclusiveGuard;
using bufmgr::MiniTransaction;

enum class Put : uint8_t { kDone, kMoved, kFull };

// The leaf where a unique key's entries begin, as it was when the probes began.  Plain data.
struct Gate {
  PageId page;  // invalid: no gate to pass
  uint64_t version = 0;
  uint64_t admitted = 0;  // Special::gate
  PageId right;
  bool all_here = false;  // in this version no other leaf has entries with the key, nor room for them
  uint32_t count = 0;
  uint64_t shown[kPerPageMax];  // tids of the entries with the key in this leaf, packed, ascending
  void begin(const InsertPosition& where, const Head& head) {
    page = where.page, version = where.version;
    admitted = head.special.gate, right = head.special.right;
    all_here = false, count = 0;
  }
  bool showed(Tid tid) const { return std::binary_search(shown, shown + count, tid.packed()); }
  uint32_t shown_before(Tid tid) const {
    return uint32_t(std::lower_bound(shown, shown + count, tid.packed()) - shown);
  }
};
static_assert(std::is_trivially_destructible_v<Gate>);  // blink.compare-private-memory

// Where a full leaf would have taken the entry.
struct Crowd {
  uint64_t version = 0;
  uint32_t index = 0;
};

// Inserts if the gate (if any) has not moved and the position still holds.  Latches gate, then leaf: left to right.
Result<Put> put(const Ground& g, const Gate& gate, const InsertPosition& where, const EntryImage& entry, Crowd& full) {
  MiniTransaction change(*g.pool, *g.session);
  GCL_TRY(change.reserve(log_space(1) + 256));
  ExclusiveGuard gate_page;
  const bool apart = gate.page.valid() && gate.page != where.page;
  if (apart) {
    auto guard = g.pool->fix_exclusive(*g.session, gate.page, bufmgr::Others::kOfOtherParts);
    if (!guard) return guard.error();
    gate_page = guard.take();
    if (gate_page.header().version != gate.version) return Put::kMoved;
  }
  if (apart) g.session->next_wait(bufmgr::WaitOrder::kRight);
  auto leaf = g.pool->fix_exclusive(*g.session, where.page, bufmgr::Others::kOfOtherParts);
  if (!leaf) return leaf.error();
  const Head head = head_of(*leaf);
  uint32_t index;
  if (gate.page == where.page && head.version != gate.version) return Put::kMoved;
  if (!find_position(*leaf, head, where, index)) return Put::kMoved;
  if (!has_room(head, entry.bytes)) {
    full.version = head.version;
    full.index = index;
    return Put::kFull;
  }
  change.join(*leaf);
  if (apart) {
    change.join(gate_page);
    const uint64_t admitted = head_of(gate_page).special.gate + 1;
    change.set(gate_page, kSpecialAt + offsetof(Special, gate), admitted);
  }
  put_entry(change, *leaf, head, index, entry);
  change.commit();
  return Put::kDone;
}

// One attempt's private memory.  Plain data.
struct Attempt {
  PageReader reader;
  Head head;
  Path path;
  InsertPosition where;
  bool no_pages;  // there was none to complete a split with: nothing may be split now (blink.split-needs-downlink)
};

// Reads the position of the place, after completing any split that the descent met, if there are pages for that.
Status find_place(const Ground& g, Comparator& compare, const Seek& seek, PageId from, Attempt& a) {
  a.no_pages = false;
  for (;;) {
    PageId incomplete;
    GCL_TRY(descend(*g.pool, *g.session, compare, seek, from, 0, &a.path, a.no_pages ? nullptr : &incomplete, a.reader,
                    a.head, Intent::kWrite));
    if (incomplete.valid()) {
      const Status completed = complete_split(g, incomplete, a.path);
      a.no_pages = completed.error() == Errc::kNoSpace;
      if (!completed && !a.no_pages) return completed.error();
      continue;
    }
    const Errc e = read_position(compare, seek, a.reader, a.head, a.where);
    if (e == Errc::kOk) return {};
    if (e != Errc::kRestart) return e;
    from = a.reader.id();
    a.reader.failed();
  }
}

// The same, on a page that the transaction holds from then on, if it holds what it writes: so it takes the page as its
// own before it reads of the key, and does not meet another one that has read it, too (serializable.exclusive-first).
Status find_place_held(const Ground& g, Comparator& compare, const Seek& seek, PageId from, bool holds, Attempt& a) {
  for (;;) {
    GCL_TRY(find_place(g, compare, seek, from, a));
    if (!holds) return {};
    auto newly = g.session->hold_to_write(a.where.page, parts_of(compare.integer_order(seek.search)));
    if (!newly) return newly.error();
    if (!*newly) return {};
    from = a.where.page;
  }
}

// Whether entries with this key may be in the tree, given the position before the first of them.
bool key_may_be_there(Comparator& compare, const void* search, const InsertPosition& where) {
  const Key& next = where.after.bytes != 0 ? where.after : where.high;
  return next.bytes != 0 && compare.compare(search, next.span()) == 0;
}

// Erases what a leaf has of dead entries, if they are many.
Status erase_batch(const Ground& g, DeadEntries& dead) {
  if (dead.count < kEraseMin) return {};
  auto done = erase(g, dead);
  const bool stays = !done && (done.error() == Errc::kRestart || done.error() == Errc::kHeld);
  return done || stays ? Status{} : Status(done.error());
}

Range equal_to(const void* search) {
  return {.low = {.search = search, .complete = true}, .high = {.search = search, .complete = true}};
}

Status next_of(Scan& scan, Entry& entry, bool& more) {
  auto next = scan.next(entry);
  if (!next) return next.error();
  more = *next;
  return {};
}

// Shows the caller every entry with the key.  `gate`: where they begin (may be null).  kRestart: the caller waited, or
// the gate has changed before the first was shown.  Dead entries met on the way are erased, so that the next check does
// not meet them.
Status probe_all(const Tree& tree, const Ground& g, Comparator& compare, const void* search, Gate* gate,
                 UniqueProbe& probe, bool holds, InsertResult& result) {
  DeadEntries dead;
  Scan scan(tree, *g.session, compare);
  if (holds) scan.hold_leaves();
  scan.reset(equal_to(search), gate != nullptr ? gate->page : PageId{});
  for (;;) {
    Entry entry;
    bool more = false;
    GCL_TRY(next_of(scan, entry, more));
    const bool in_gate = gate != nullptr && scan.leaf() == gate->page;
    if (in_gate && scan.leaf_version() != gate->version) return Errc::kRestart;
    if (!more) {
      if (in_gate) gate->all_here = true;
      return erase_batch(g, dead);
    }
    if (in_gate) gate->shown[gate->count++] = entry.tid.packed();
    const auto seen = probe.probe(entry);
    if (!seen) return seen.error();
    if (dead.leaf != scan.leaf()) {
      GCL_TRY(erase_batch(g, dead));
      dead.begin(scan.leaf(), scan.leaf_version());
    }
    if (*seen == ProbeResult::kDead) dead.add(entry.tid);
    if (*seen == ProbeResult::kAgain) return Errc::kRestart;
    if (*seen == ProbeResult::kConflict) {
      result.unique = false;
      result.conflict = entry.tid;
      return erase_batch(g, dead);
    }
  }
}

// The leaf at `a` has changed since the probes ran.  `passed`: but only by other keys' entries, and by entries that
// went; then its present version is as good as the one it had.  Entries of the key that came would be among those it
// has now; or have been admitted, or have moved on with a split: both show (README, "Unique").
Status pass_again(const Tree& tree, const Ground& g, Comparator& compare, const void* search, const Attempt& a,
                  Gate& gate, bool& passed) {
  passed = false;
  const Special& now = a.head.special;
  if (gate.page != a.where.page || gate.right != now.right || gate.admitted != now.gate) return {};
  Scan scan(tree, *g.session, compare);
  scan.reset(equal_to(search), gate.page);
  while (a.where.after.bytes != 0) {
    Entry entry;
    bool more = false;
    GCL_TRY(next_of(scan, entry, more));
    if (!more || scan.leaf() != gate.page) break;
    if (scan.leaf_version() != a.where.version || !gate.showed(entry.tid)) return {};
  }
  gate.version = a.where.version;
  gate.all_here = false;
  passed = true;
  return {};
}

// Brings `gate` and `result` up to date for the position at `a`, where entries with the key may begin.
Status pass_gate(const Tree& tree, const Ground& g, Comparator& compare, const void* search, const Attempt& a,
                 UniqueProbe& probe, bool holds, Gate& gate, InsertResult& result) {
  bool passed = false;
  if (gate.page.valid()) GCL_TRY(pass_again(tree, g, compare, search, a, gate, passed));
  if (passed) return {};
  result = {};
  gate.begin(a.where, a.head);
  return probe_all(tree, g, compare, search, &gate, probe, holds, result);
}

}  // namespace

Result<InsertResult> Tree::insert(Session& session, Comparator& compare, const void* search,
                                  std::span<const std::byte> key, Tid tid, Unique unique, UniqueProbe* probe,
                                  DeadJudge* rows) {
  if (key.size() > kKeyMax) return Errc::kTooLarge;
  VERIFY(key.size() >= kKeyMin && tid.valid() && (unique == Unique::kNo || probe != nullptr));
  const Ground g{pool_, &session, meta_, root_, fill_};
  const EntryImage entry = EntryImage::leaf(key, tid);
  const Seek place = Seek::exact(search, tid);
  Attempt a;
  InsertResult result;
  Gate gate;
  const bool holds = held_ && session.holding();
  for (;;) {
    bool found = false;
    if (unique != Unique::kNo) {
      if (const Status s = find_place_held(g, compare, Seek::before(search, true), root_, holds, a); !s)
        return s.error();
      found = !key_may_be_there(compare, search, a.where);
      if (found) {
        result = {};
        gate.page = {};
      } else {
        const Status s = pass_gate(*this, g, compare, search, a, *probe, holds, gate, result);
        if (s.error() == Errc::kRestart) {
          gate.page = {};
          if (session.interrupted()) return Errc::kInterrupted;
          continue;
        }
        if (!s) return s.error();
        if (!result.unique && unique == Unique::kCheck) return result;
        found = gate.all_here;  // the place among its equals is in the gate, and known as long as that is passed
        if (found) a.where.index += gate.shown_before(tid);
      }
    }
    if (!found)
      if (const Status s = find_place_held(g, compare, place, root_, holds, a); !s) return s.error();
    stop_at(session, StopPoint::kBlinkInsertReady);
    Put outcome = Put::kMoved;
    Crowd full;
    if (auto done = put(g, gate, a.where, entry, full); !done)
      return done.error();
    else
      outcome = *done;
    if (outcome == Put::kDone) {
      result.inserted = true;
      return result;
    }
    if (outcome == Put::kMoved && session.interrupted()) return Errc::kInterrupted;
    if (outcome != Put::kFull) continue;
    bool cleared = false;
    if (rows != nullptr)
      if (const Status s = clear_leaf(g, a.where.page, full.version, *rows, cleared); !s) return s.error();
    if (!cleared && a.no_pages) return Errc::kNoSpace;
    if (!cleared)
      if (const Status s = make_room(g, a.where.page, full.version, full.index, &compare, a.path); !s) return s.error();
  }
}

Result<InsertResult> Tree::check_unique(Session& session, Comparator& compare, const void* search, UniqueProbe& probe) {
  const Ground g{pool_, &session, meta_, root_};
  for (;;) {
    InsertResult result;
    const Status s = probe_all(*this, g, compare, search, nullptr, probe, held_ && session.holding(), result);
    if (s) return result;
    if (s.error() != Errc::kRestart) return s.error();
  }
}

}  // namespace engine::blink

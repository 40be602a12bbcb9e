#include "extension/engine/blink/insert.hpp"

#include "extension/engine/blink/erase.hpp"
#include "extension/engine/blink/image.hpp"
#include "extension/engine/blink/scan.hpp"

namespace engine::blink {
namespace {

using bufmgr::ExclusiveGuard;
using bufmgr::MiniTransaction;

enum class Put : uint8_t { kDone, kMoved, kFull };

// The leaf where a unique key's entries begin, and its version when the probes began.  Invalid: no gate to pass.
struct Gate {
  PageId page;
  uint64_t version = 0;
};

// Where a full leaf would have taken the entry.
struct Crowd {
  uint64_t version = 0;
  uint32_t index = 0;
};

// Inserts if the gate (if any) has not moved and the gap is still there.  Latches gate, then leaf: left to right.
Result<Put> put(const Ground& g, const Gate& gate, const Gap& gap, const EntryImage& entry, Crowd& full) {
  MiniTransaction change(*g.pool, *g.session);
  GCL_TRY(change.reserve(log_space(1) + 256));
  ExclusiveGuard gate_page;
  const bool apart = gate.page.valid() && gate.page != gap.page;
  if (apart) {
    auto guard = g.pool->fix_exclusive(*g.session, gate.page);
    if (!guard) return guard.error();
    gate_page = guard.take();
    if (gate_page.header().version != gate.version) return Put::kMoved;
  }
  if (apart) g.session->next_wait(bufmgr::WaitOrder::kRight);
  auto leaf = g.pool->fix_exclusive(*g.session, gap.page);
  if (!leaf) return leaf.error();
  const Head head = head_of(*leaf);
  uint32_t index;
  if (gate.page == gap.page && head.version != gate.version) return Put::kMoved;
  if (!find_gap(*leaf, head, gap, index)) return Put::kMoved;
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
  Look look;
  Head head;
  Path path;
  Gap gap;
  bool no_pages;  // there was none to complete a split with: nothing may be split now (I-B6)
};

// Reads the gap at the place, after completing whatever split the descent met, if there are pages for that.
Status find_place(const Ground& g, Comparator& compare, const Seek& seek, PageId from, Attempt& a) {
  a.no_pages = false;
  for (;;) {
    PageId incomplete;
    GCL_TRY(descend(*g.pool, *g.session, compare, seek, from, 0, &a.path, a.no_pages ? nullptr : &incomplete, a.look,
                    a.head));
    if (incomplete.valid()) {
      const Status completed = complete_split(g, incomplete, a.path);
      a.no_pages = completed.error() == Errc::kNoSpace;
      if (!completed && !a.no_pages) return completed.error();
      continue;
    }
    const Errc e = read_gap(compare, seek, a.look, a.head, a.gap);
    if (e == Errc::kOk) return {};
    if (e != Errc::kRestart) return e;
    from = a.look.id();
    a.look.failed();
  }
}

// Whether entries with this key may be in the tree, given the gap before the first of them.
bool key_may_be_there(Comparator& compare, const void* search, const Gap& gap) {
  const Key& next = gap.after.bytes != 0 ? gap.after : gap.high;
  return next.bytes != 0 && compare.compare(search, next.span()) == 0;
}

// Erases what a leaf has of dead entries, if they are many.
Status erase_batch(const Ground& g, DeadEntries& dead) {
  if (dead.count < kEraseMin) return {};
  auto done = erase(g, dead);
  return done || done.error() == Errc::kRestart ? Status{} : Status(done.error());
}

// Shows the caller every entry with the key.  `gate`: where they begin, if known.  kRestart: the caller waited.
// The dead ones met on the way leave, so that the next who comes does not meet them again.
Status probe_all(const Tree& tree, const Ground& g, Comparator& compare, const void* search, PageId gate,
                 UniqueProbe& probe, InsertResult& result) {
  DeadEntries dead;
  Scan scan(tree, *g.session, compare);
  scan.reset({.low = {.search = search, .complete = true}, .high = {.search = search, .complete = true}}, gate);
  for (;;) {
    Entry entry;
    bool more = false;
    if (auto next = scan.next(entry); !next)
      return next.error();
    else
      more = *next;
    if (!more) return erase_batch(g, dead);
    Verdict verdict;
    if (auto seen = probe.probe(entry); !seen)
      return seen.error();
    else
      verdict = *seen;
    if (dead.leaf != scan.leaf()) {
      GCL_TRY(erase_batch(g, dead));
      dead.begin(scan.leaf(), scan.leaf_version());
    }
    if (verdict == Verdict::kDead) dead.add(entry.tid);
    if (verdict == Verdict::kAgain) return Errc::kRestart;
    if (verdict == Verdict::kConflict) {
      result.unique = false;
      result.conflict = entry.tid;
      return erase_batch(g, dead);
    }
  }
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
  for (;;) {
    InsertResult result;
    Gate gate;
    bool found = false;
    if (unique != Unique::kNo) {
      if (const Status s = find_place(g, compare, Seek::before(search, true), root_, a); !s) return s.error();
      found = true;
      if (key_may_be_there(compare, search, a.gap)) {
        gate = {a.gap.page, a.gap.version};
        const Status s = probe_all(*this, g, compare, search, gate.page, *probe, result);
        if (s.error() == Errc::kRestart) continue;
        if (!s) return s.error();
        if (!result.unique && unique == Unique::kCheck) return result;
        found = false;  // the place is somewhere among the equal ones
      }
    }
    if (!found)
      if (const Status s = find_place(g, compare, place, gate.page.valid() ? gate.page : root_, a); !s)
        return s.error();
    Put outcome = Put::kMoved;
    Crowd full;
    if (auto done = put(g, gate, a.gap, entry, full); !done)
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
      if (const Status s = clear_leaf(g, a.gap.page, full.version, *rows, cleared); !s) return s.error();
    if (!cleared && a.no_pages) return Errc::kNoSpace;
    if (!cleared)
      if (const Status s = make_room(g, a.gap.page, full.version, full.index, &compare, a.path); !s) return s.error();
  }
}

Result<InsertResult> Tree::check_unique(Session& session, Comparator& compare, const void* search, UniqueProbe& probe) {
  const Ground g{pool_, &session, meta_, root_};
  for (;;) {
    InsertResult result;
    const Status s = probe_all(*this, g, compare, search, {}, probe, result);
    if (s) return result;
    if (s.error() != Errc::kRestart) return s.error();
  }
}

}  // namespace engine::blink

// Index scans: amgettuple and amgetbitmap over ranges of the B-link tree, one range per combination of array keys.
#include <new>

#include "extension/pg/indexam/callbacks.hpp"
#include "extension/pg/indexam/open.hpp"
#include "extension/pg/indexam/scan_state.hpp"
#include "extension/pg/runtime/ddl_hooks.hpp"

extern "C" {
#include "pgstat.h"
#include "utils/memutils.h"
#include "utils/rel.h"
}

namespace gcl {

using engine::blink::Entry;
using engine::blink::Scan;

namespace {

bool is_forward(ScanDirection direction) { return ScanDirectionIsForward(direction); }

// The next entry that the keys accept, or false at the end of the range (where the position stays).
bool advance(IndexScanDesc scan, ScanState& state, ScanDirection direction, Entry& entry) {
  const bool forward = is_forward(direction);
  if (state.done[forward]) return false;
  state.done[!forward] = false;
  const int attributes = IndexRelationGetNumberOfAttributes(scan->indexRelation);
  for (;;) {
    const bool more = *until_done(scan->indexRelation,
                                  [&] { return forward ? state.position->next(entry) : state.position->prev(entry); });
    if (!more) return false;
    auto* tuple = reinterpret_cast<IndexTuple>(const_cast<std::byte*>(entry.key.data()));
    bool go_on = true;
    if (_bt_checkkeys(scan, tuple, attributes, direction, &go_on)) return true;
    if (!go_on) {
      state.done[forward] = true;
      return false;
    }
    CHECK_FOR_INTERRUPTS();
  }
}

// Stands before the first entry of the range of the present keys.  False: they accept nothing.
bool begin_range(IndexScanDesc scan, ScanState& state) {
  pgstat_count_index_scan(scan->indexRelation);
  _bt_preprocess_keys(scan);
  state.done[0] = state.done[1] = false;
  if (!state.keys()->qual_ok) return false;
  // Other snapshots are the planner's, or those of checks that go on to insert or to look at the row.
  if (scan->xs_snapshot != nullptr && scan->xs_snapshot->snapshot_type == SNAPSHOT_MVCC &&
      holds_of(scan->indexRelation).reads)
    state.position->hold_leaves();
  state.position->reset(scan_range(scan, state));
  state.positioned = true;
  return true;
}

bool next_match(IndexScanDesc scan, ScanState& state, ScanDirection direction, Entry& entry) {
  BTScanOpaque keys = state.keys();
  if (!state.positioned && keys->numArrayKeys != 0) {
    if (keys->numArrayKeys < 0) return false;  // an array that cannot be satisfied
    _bt_start_array_keys(scan, direction);
  }
  do {
    if ((state.positioned || begin_range(scan, state)) && advance(scan, state, direction, entry)) return true;
    if (keys->numArrayKeys == 0) return false;
    state.positioned = false;
  } while (_bt_advance_array_keys(scan, direction));
  return false;
}

// What was found dead in a leaf goes when the scan has left it; if it cannot go now, the next scan finds it again
// (index.erased-after-leaf).
void forget_dead(ScanState& state) {
  if (state.dead.count >= engine::blink::kEraseMin && !pool().fenced())
    (void)state.position->tree().forget(session(), state.dead);
  state.dead.begin({}, 0);
}

// The executor found nothing but dead rows behind the entry handed out last.
void note_dead(ScanState& state) {
  const coherence::PageId leaf = state.position->leaf();
  if (state.dead.leaf != leaf || state.dead.version != state.position->leaf_version()) {
    forget_dead(state);
    state.dead.begin(leaf, state.position->leaf_version());
  }
  state.dead.add(state.last);
}

// One state that the process keeps: a state is more than a memory context keeps, and each statement that looks a row up
// would have it allocated and freed.  A scan has it until the context ends in which the scan began, whatever ends it:
// an ERROR calls no blink_amendscan().
struct Kept {
  MemoryContextCallback ended;
  bool taken;
  alignas(ScanState) char state[sizeof(ScanState)];
} kept;

ScanState* take_state() {
  if (kept.taken) return static_cast<ScanState*>(palloc(sizeof(ScanState)));
  kept.ended = {.func = [](void*) { kept.taken = false; }, .arg = nullptr, .next = nullptr};
  MemoryContextRegisterResetCallback(CurrentMemoryContext, &kept.ended);
  kept.taken = true;
  return reinterpret_cast<ScanState*>(kept.state);
}

void give_back(ScanState* state) {
  if (reinterpret_cast<char*>(state) != kept.state) pfree(state);
}

}  // namespace

IndexScanDesc blink_ambeginscan(Relation index, int keys, int orderbys) {
  IndexScanDesc scan = RelationGetIndexScan(index, keys, orderbys);
  ScanState* const state = take_state();
  memset(static_cast<void*>(state), 0, offsetof(ScanState, dead));
  state->dead.begin({}, 0);
  const int attributes = IndexRelationGetNumberOfKeyAttributes(index);
  state->low.prepare(attributes);
  state->high.prepare(attributes);
  state->context = CurrentMemoryContext;
  state->mark = nullptr;
  state->compare = new (state->compare_at) TupleComparator(index);
  state->position = new (state->position_at) Scan(open_tree(index), session(), *state->compare);

  BTScanOpaque so = state->keys();
  so->keyData = keys > 0 ? static_cast<ScanKey>(palloc(keys * sizeof(ScanKeyData))) : nullptr;
  so->markItemIndex = -1;
  scan->xs_itupdesc = RelationGetDescr(index);
  scan->opaque = state;
  return scan;
}

void blink_amrescan(IndexScanDesc scan, ScanKey keys, int, ScanKey, int) {
  ScanState& state = *ScanState::of(scan);
  forget_dead(state);
  state.positioned = false;
  state.marked = false;
  if (keys != nullptr && scan->numberOfKeys > 0) memmove(scan->keyData, keys, scan->numberOfKeys * sizeof(ScanKeyData));
  state.keys()->numberOfKeys = 0;
  state.keys()->arraysStarted = false;
  _bt_preprocess_array_keys(scan);
}

// As a scan of the table: another primary's statement finds no rows.
bool blink_amgettuple(IndexScanDesc scan, ScanDirection direction) {
  if (ddl_replaying()) return false;
  count_in();
  ScanState& state = *ScanState::of(scan);
  scan->xs_recheck = false;
  if (scan->kill_prior_tuple && state.positioned) note_dead(state);
  Entry entry;
  const bool found = next_match(scan, state, direction, entry);
  if (state.dead.count != 0 && (!found || state.position->leaf() != state.dead.leaf)) forget_dead(state);
  if (!found) return false;
  state.last = entry.tid;
  ItemPointerSet(&scan->xs_heaptid, entry.tid.block, entry.tid.offset);
  if (scan->xs_want_itup) scan->xs_itup = reinterpret_cast<IndexTuple>(const_cast<std::byte*>(entry.key.data()));
  return true;
}

int64 blink_amgetbitmap(IndexScanDesc scan, TIDBitmap* bitmap) {
  if (ddl_replaying()) return 0;
  count_in();
  ScanState& state = *ScanState::of(scan);
  int64 found = 0;
  Entry entry;
  while (next_match(scan, state, ForwardScanDirection, entry)) {
    ItemPointerData tid;
    ItemPointerSet(&tid, entry.tid.block, entry.tid.offset);
    tbm_add_tuples(bitmap, &tid, 1, false);
    ++found;
  }
  return found;
}

void blink_ammarkpos(IndexScanDesc scan) {
  ScanState& state = *ScanState::of(scan);
  state.marked = state.positioned;
  if (state.positioned) {
    if (state.mark == nullptr) state.mark = static_cast<Scan*>(MemoryContextAlloc(state.context, sizeof(Scan)));
    memcpy(static_cast<void*>(state.mark), state.position, sizeof(Scan));
    memcpy(state.marked_done, state.done, sizeof state.done);
  }
  if (state.keys()->numArrayKeys != 0) _bt_mark_array_keys(scan);
}

void blink_amrestrpos(IndexScanDesc scan) {
  ScanState& state = *ScanState::of(scan);
  if (state.keys()->numArrayKeys != 0) {
    _bt_restore_array_keys(scan);
    if (state.marked) scan_range(scan, state);  // the search keys that the marked range points to
  }
  state.positioned = state.marked;
  if (!state.marked) return;
  memcpy(static_cast<void*>(state.position), state.mark, sizeof(Scan));
  memcpy(state.done, state.marked_done, sizeof state.done);
}

void blink_amendscan(IndexScanDesc scan) {
  ScanState* state = ScanState::of(scan);
  forget_dead(*state);
  BTScanOpaque so = state->keys();
  if (so->arrayContext != nullptr) MemoryContextDelete(so->arrayContext);
  if (so->keyData != nullptr) pfree(so->keyData);
  if (state->mark != nullptr) pfree(state->mark);
  give_back(state);
}

}  // namespace gcl

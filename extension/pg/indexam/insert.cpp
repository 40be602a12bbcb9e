// aminsert: one entry, and the uniqueness of its key.
#include "extension/engine/blink/tree.hpp"
#include "extension/engine/heap/decision_wait.hpp"
#include "extension/engine/heap/heap.hpp"
#include "extension/engine/txn/transaction.hpp"
#include "extension/pg/indexam/callbacks.hpp"
#include "extension/pg/indexam/compare.hpp"
#include "extension/pg/indexam/open.hpp"
#include "extension/pg/runtime/until_done.hpp"

extern "C" {
#include "access/itup.h"
#include "access/nbtree.h"
#include "storage/itemptr.h"
#include "utils/rel.h"
#include "utils/relcache.h"
}

namespace gcl {

using coherence::Result;
using engine::RowProbe;
using engine::Tid;
using engine::blink::Entry;
using engine::blink::InsertResult;
using engine::blink::ProbeResult;
using engine::blink::Unique;

namespace {

Tid as_tid(ItemPointer pointer) {
  return {ItemPointerGetBlockNumberNoCheck(pointer), ItemPointerGetOffsetNumberNoCheck(pointer)};
}

// Looks at the rows behind entries with an equal key, as nbtree's unique check does.
class RowsProbe final : public engine::blink::UniqueProbe {
 public:
  RowsProbe(Relation table, Relation index, Tid own, bool wait)
      : table_(table), index_(index), own_(own), wait_(wait), decision_(txns()) {}

  Result<ProbeResult> probe(const Entry& entry) override {
    if (entry.tid == own_) {
      found_own_ = true;
      return ProbeResult::kFree;
    }
    const RowProbe row = look(entry.tid);
    if (row.kind == RowProbe::kDead)
      return row.dead_to_all || dead_now(entry.tid) ? ProbeResult::kDead : ProbeResult::kFree;
    if (row.kind == RowProbe::kRunning && wait_) {
      until_ok(index_, [&] { return decision_.wait({.by = row.by, .tid = row.tid, .made = row.made}); });
      return ProbeResult::kAgain;
    }
    // A conflict; but not if the row that is being indexed has died meanwhile.
    return !wait_ || look(own_).kind == RowProbe::kLive ? ProbeResult::kConflict : ProbeResult::kFree;
  }

  bool found_own() const { return found_own_; }

 private:
  RowProbe look(Tid tid) {
    count_page_accesses(index_);  // so far
    return *until_done(table_, [&] { return heap_of(table_).probe(tid); });
  }

  // Whether a row that some snapshot might have seen is dead to all by now.  A check that meets many of them asks once
  // how far the horizon has come.
  bool dead_now(Tid tid) {
    if (++recently_dead_ != kAskAfter) return false;
    until_ok(index_, [] { return txns().refresh_horizon(); });
    return look(tid).dead_to_all;
  }

  Relation table_;
  Relation index_;
  Tid own_;
  bool wait_;  // false: a row that might be there is a conflict, to be checked again at the end of the statement
  engine::DecisionWait decision_;
  bool found_own_ = false;
  uint32_t recently_dead_ = 0;
  static constexpr uint32_t kAskAfter = 8;
};

// Whether the rows of a full leaf are still needed.
class RowsJudge final : public engine::blink::DeadJudge {
 public:
  RowsJudge(Relation table, Relation index) : table_(table), index_(index) {}
  Result<bool> dead_to_all(Tid tid) override {
    RowProbe row = look(tid);
    if (row.kind != RowProbe::kDead || row.dead_to_all || asked_) return row.dead_to_all;
    until_ok(index_, [] { return txns().refresh_horizon(); });
    asked_ = true;
    return look(tid).dead_to_all;
  }

 private:
  RowProbe look(Tid tid) {
    count_page_accesses(index_);  // so far
    return *until_done(table_, [&] { return heap_of(table_).probe(tid, false); });
  }

  Relation table_;
  Relation index_;
  bool asked_ = false;  // how far the horizon has come
};

[[noreturn]] void report_duplicate(Relation index, Relation table, Datum* values, bool* isnull) {
  char* key = BuildIndexValueDescription(index, values, isnull);
  ereport(ERROR, errcode(ERRCODE_UNIQUE_VIOLATION),
          errmsg("duplicate key value violates unique constraint \"%s\"", RelationGetRelationName(index)),
          key != nullptr ? errdetail("Key %s already exists.", key) : 0,
          errtableconstraint(table, RelationGetRelationName(index)));
  pg_unreachable();
}

bool has_null_key(Relation index, const bool* isnull) {
  for (int i = 0; i < IndexRelationGetNumberOfKeyAttributes(index); ++i) {
    if (isnull[i]) return true;
  }
  return false;
}

// Keys with nulls differ from everything, unless the index says NULLS NOT DISTINCT.
bool must_be_unique(Relation index, const bool* isnull) {
  return index->rd_index->indnullsnotdistinct || !has_null_key(index, isnull);
}

void check_existing(Relation index, Relation table, const SearchKey& search, Tid tid, Datum* values, bool* isnull) {
  TupleComparator compare(index);
  RowsProbe probe(table, index, tid, true);
  const bool unique =
      until_done(index, [&] { return open_tree(index).check_unique(session(), compare, &search, probe); })->unique;
  if (!unique) report_duplicate(index, table, values, isnull);
  if (!probe.found_own()) {
    ereport(ERROR, errcode(ERRCODE_INTERNAL_ERROR),
            errmsg("failed to re-find tuple within index \"%s\"", RelationGetRelationName(index)),
            errhint("This may be because of a non-immutable index expression."),
            errtableconstraint(table, RelationGetRelationName(index)));
  }
}

}  // namespace

void report_too_large(Relation index, Relation table, Size bytes, ItemPointer tid) {
  ereport(ERROR, errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
          errmsg("index row size %zu exceeds btree version %u maximum %zu for index \"%s\"", bytes, BTREE_VERSION,
                 Size{engine::blink::kKeyMax}, RelationGetRelationName(index)),
          errdetail("Index row references tuple (%u,%u) in relation \"%s\".", ItemPointerGetBlockNumberNoCheck(tid),
                    ItemPointerGetOffsetNumberNoCheck(tid), RelationGetRelationName(table)),
          errhint("Values larger than 1/3 of a buffer page cannot be indexed.\n"
                  "Consider a function index of an MD5 hash of the value, or use full text indexing."),
          errtableconstraint(table, RelationGetRelationName(index)));
}

bool blink_aminsert(Relation index, Datum* values, bool* isnull, ItemPointer tid, Relation table,
                    IndexUniqueCheck check, bool, IndexInfo*) {
  count_in();
  IndexTuple tuple = index_form_tuple(RelationGetDescr(index), values, isnull);
  tuple->t_tid = *tid;
  const Size bytes = IndexTupleSize(tuple);
  if (bytes > engine::blink::kKeyMax) report_too_large(index, table, bytes, tid);
  SearchKey search;
  search.fill(index, tuple);

  const bool checked = check != UNIQUE_CHECK_NO && must_be_unique(index, isnull);
  if (check == UNIQUE_CHECK_EXISTING) {
    if (checked) check_existing(index, table, search, as_tid(tid), values, isnull);
    pfree(tuple);
    return true;
  }
  const Unique unique = !checked ? Unique::kNo : check == UNIQUE_CHECK_PARTIAL ? Unique::kPartial : Unique::kCheck;
  TupleComparator compare(index);
  RowsProbe probe(table, index, as_tid(tid), unique == Unique::kCheck);
  RowsJudge rows(table, index);
  const std::span key{reinterpret_cast<const std::byte*>(tuple), bytes};
  const InsertResult done = *until_done(index, [&] {
    return open_tree(index).insert(session(), compare, &search, key, as_tid(tid), unique,
                                   unique == Unique::kNo ? nullptr : &probe, &rows);
  });
  if (unique == Unique::kCheck && !done.unique) report_duplicate(index, table, values, isnull);
  pfree(tuple);
  return done.unique;
}

}  // namespace gcl

#include "extension/pg/sequence/sequence_functions.hpp"

#include "extension/pg/boundary/builtin_patch.hpp"
#include "extension/pg/runtime/backend.hpp"
#include "extension/pg/runtime/stop_points.hpp"
#include "extension/pg/sequence/identity_columns.hpp"
#include "extension/pg/sequence/sequence_file.hpp"

extern "C" {
#include "access/relation.h"
#include "catalog/pg_class.h"
#include "catalog/pg_sequence.h"
#include "commands/sequence.h"
#include "utils/acl.h"
#include "utils/fmgroids.h"
#include "utils/fmgrprotos.h"
#include "utils/hsearch.h"
#include "utils/lsyscache.h"
#include "utils/resowner.h"
#include "utils/syscache.h"
}

namespace gcl {

using engine::SequenceRules;
using engine::SequenceRun;

namespace {

// What this session knows of a sequence.
struct Used {
  Oid sequence;
  Oid file;  // of which `left` is
  LocalTransactionId locked_in;
  bool known;  // `last` is what currval() returns
  int64 last;
  int64 step;
  uint64_t left;  // values behind `last` that are this session's
};

HTAB* used = nullptr;
Used* last_used = nullptr;  // null: none, or one of the server's

Used* find(Oid sequence) {
  if (used == nullptr) {
    HASHCTL control{};
    control.keysize = sizeof(Oid);
    control.entrysize = sizeof(Used);
    used = hash_create("gcl sequences", 16, &control, HASH_ELEM | HASH_BLOBS);
  }
  bool found;
  auto* entry = static_cast<Used*>(hash_search(used, &sequence, HASH_ENTER, &found));
  if (!found) *entry = {sequence, InvalidOid, InvalidLocalTransactionId, false, 0, 0, 0};
  return entry;
}

// Locked until the end of the transaction, as the server does, once per transaction.
Relation open_sequence(Used* entry) {
  const LocalTransactionId now = MyProc->lxid;
  if (entry->locked_in != now) {
    ResourceOwner caller = CurrentResourceOwner;
    CurrentResourceOwner = TopTransactionResourceOwner;
    LockRelationOid(entry->sequence, RowExclusiveLock);
    CurrentResourceOwner = caller;
    entry->locked_in = now;
  }
  Relation sequence = relation_open(entry->sequence, NoLock);
  if (entry->file != sequence->rd_node.relNode) {  // altered: what was cached is of the former definition
    entry->file = sequence->rd_node.relNode;
    entry->left = 0;
  }
  return sequence;
}

SequenceRules rules_of(Oid sequence) {
  HeapTuple tuple = SearchSysCache1(SEQRELID, ObjectIdGetDatum(sequence));
  if (!HeapTupleIsValid(tuple)) elog(ERROR, "cache lookup failed for sequence %u", sequence);
  const auto* form = reinterpret_cast<Form_pg_sequence>(GETSTRUCT(tuple));
  const SequenceRules rules{form->seqincrement, form->seqmin, form->seqmax, uint64_t(form->seqcache), form->seqcycle};
  ReleaseSysCache(tuple);
  return rules;
}

void check_privilege(Relation sequence, AclMode any_of) {
  if (pg_class_aclcheck(RelationGetRelid(sequence), GetUserId(), any_of) == ACLCHECK_OK) return;
  ereport(ERROR, errcode(ERRCODE_INSUFFICIENT_PRIVILEGE),
          errmsg("permission denied for sequence %s", RelationGetRelationName(sequence)));
}

[[noreturn]] void raise_end(Relation sequence, const SequenceRules& rules) {
  const bool up = rules.increment > 0;
  ereport(ERROR, errcode(ERRCODE_SEQUENCE_GENERATOR_LIMIT_EXCEEDED),
          errmsg("nextval: reached %s value of sequence \"%s\" (%lld)", up ? "maximum" : "minimum",
                 RelationGetRelationName(sequence), (long long)(up ? rules.max : rules.min)));
  pg_unreachable();
}

// A run of values for this session.
SequenceRun run_of(Relation sequence, const SequenceRules& rules) {
  SequenceRun run = *until_done(sequence, [&] { return sequence_of(sequence).take(rules); });
  if (run.count > 0) return run;
  // A commit that uses the values has the lease on disk before it.
  (void)GetTopTransactionId();
  ForceSyncCommit();
  run = *until_done(sequence, [&] { return sequence_of(sequence).lease(rules); });
  if (run.count == 0) raise_end(sequence, rules);
  stop_here(StopPoint::kSequenceLeased);
  return run;
}

Datum any_nextval(PG_FUNCTION_ARGS) {
  const Oid sequence = PG_GETARG_OID(0);
  const bool identity = is_identity_call(fcinfo);
  if (is_gcl_sequence(sequence)) PG_RETURN_INT64(next_of_gcl_sequence(sequence, !identity));
  const int64 value = nextval_internal(sequence, !identity);
  last_used = nullptr;
  PG_RETURN_INT64(value);
}

Datum any_currval(PG_FUNCTION_ARGS) {
  const Oid oid = PG_GETARG_OID(0);
  if (!is_gcl_sequence(oid)) return currval_oid(fcinfo);
  Used* entry = find(oid);
  Relation sequence = open_sequence(entry);
  check_privilege(sequence, ACL_SELECT | ACL_USAGE);
  if (!entry->known)
    ereport(ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
            errmsg("currval of sequence \"%s\" is not yet defined in this session", RelationGetRelationName(sequence)));
  relation_close(sequence, NoLock);
  PG_RETURN_INT64(entry->last);
}

Datum any_lastval(PG_FUNCTION_ARGS) {
  if (last_used == nullptr) return lastval(fcinfo);
  if (!SearchSysCacheExists1(RELOID, ObjectIdGetDatum(last_used->sequence)))
    ereport(ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
            errmsg("lastval is not yet defined in this session"));
  Relation sequence = open_sequence(last_used);
  check_privilege(sequence, ACL_SELECT | ACL_USAGE);
  relation_close(sequence, NoLock);
  PG_RETURN_INT64(last_used->last);
}

void set_value(Oid oid, int64 value, bool called) {
  Used* entry = find(oid);
  Relation sequence = open_sequence(entry);
  check_privilege(sequence, ACL_UPDATE);
  const SequenceRules rules = rules_of(oid);
  PreventCommandIfReadOnly("setval()");
  PreventCommandIfParallelMode("setval()");
  if (value < rules.min || value > rules.max)
    ereport(ERROR, errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
            errmsg("setval: value %lld is out of bounds for sequence \"%s\" (%lld..%lld)", (long long)value,
                   RelationGetRelationName(sequence), (long long)rules.min, (long long)rules.max));
  (void)GetTopTransactionId();
  ForceSyncCommit();
  until_ok(sequence, [=] { return sequence_of(sequence).set({value, called}); });
  if (called) {
    entry->last = value;
    entry->known = true;
  }
  entry->left = 0;
  relation_close(sequence, NoLock);
}

Datum any_setval(PG_FUNCTION_ARGS) {
  if (!is_gcl_sequence(PG_GETARG_OID(0))) return setval_oid(fcinfo);
  set_value(PG_GETARG_OID(0), PG_GETARG_INT64(1), true);
  PG_RETURN_INT64(PG_GETARG_INT64(1));
}

Datum any_setval3(PG_FUNCTION_ARGS) {
  if (!is_gcl_sequence(PG_GETARG_OID(0))) return setval3_oid(fcinfo);
  set_value(PG_GETARG_OID(0), PG_GETARG_INT64(1), PG_GETARG_BOOL(2));
  PG_RETURN_INT64(PG_GETARG_INT64(1));
}

Datum any_sequence_last_value(PG_FUNCTION_ARGS) {
  const Oid oid = PG_GETARG_OID(0);
  if (!is_gcl_sequence(oid)) return pg_sequence_last_value(fcinfo);
  Relation sequence = open_sequence(find(oid));
  check_privilege(sequence, ACL_SELECT | ACL_USAGE);
  const engine::SequenceState state = *until_done(sequence, [=] { return sequence_of(sequence).read(); });
  relation_close(sequence, NoLock);
  if (!state.called) PG_RETURN_NULL();
  PG_RETURN_INT64(state.last);
}

}  // namespace

int64 next_of_gcl_sequence(Oid oid, bool check_privileges) {
  Used* entry = find(oid);
  Relation sequence = open_sequence(entry);
  if (check_privileges) check_privilege(sequence, ACL_USAGE | ACL_UPDATE);
  PreventCommandIfReadOnly("nextval()");
  PreventCommandIfParallelMode("nextval()");
  if (entry->left > 0) {
    entry->last = SequenceRun::moved(entry->last, 1, entry->step);
    --entry->left;
  } else {
    const SequenceRules rules = rules_of(oid);
    const SequenceRun run = run_of(sequence, rules);
    entry->last = run.first;
    entry->left = run.count - 1;
    entry->step = rules.increment;
    entry->known = true;
  }
  relation_close(sequence, NoLock);
  last_used = entry;
  return entry->last;
}

void forget_sequences() noexcept {
  if (used != nullptr) hash_destroy(used);
  used = nullptr;
  last_used = nullptr;
}

void replace_sequence_functions() {
  replace_builtin({F_NEXTVAL, "nextval_oid", nextval_oid, 1}, any_nextval);
  replace_builtin({F_CURRVAL, "currval_oid", currval_oid, 1}, any_currval);
  replace_builtin({F_LASTVAL, "lastval", lastval, 0}, any_lastval);
  replace_builtin({F_SETVAL_REGCLASS_INT8, "setval_oid", setval_oid, 2}, any_setval);
  replace_builtin({F_SETVAL_REGCLASS_INT8_BOOL, "setval3_oid", setval3_oid, 3}, any_setval3);
  replace_builtin({F_PG_SEQUENCE_LAST_VALUE, "pg_sequence_last_value", pg_sequence_last_value, 1},
                  any_sequence_last_value);
}

}  // namespace gcl

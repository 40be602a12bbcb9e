#include "extension/pg/ddl/record/attribute_versions.hpp"

extern "C" {
#include "access/htup_details.h"
#include "access/relation.h"
#include "access/reloptions.h"
#include "access/table.h"
#include "catalog/indexing.h"
#include "catalog/pg_attribute.h"
#include "commands/defrem.h"
#include "nodes/makefuncs.h"
#include "utils/rel.h"
#include "utils/syscache.h"
}

namespace gcl {
namespace {

bool is_version(const DefElem* option) { return strcmp(option->defname, ATTRIBUTE_VERSION_ATTOPTION) == 0; }

List* options_of(HeapTuple tuple) {
  bool is_null;
  const Datum options = SysCacheGetAttr(ATTNUM, tuple, Anum_pg_attribute_attoptions, &is_null);
  return is_null ? NIL : untransformRelOptions(options);
}

uint64_t get_version(Oid table, int attribute) {
  HeapTuple tuple = SearchSysCache2(ATTNUM, ObjectIdGetDatum(table), Int16GetDatum(int16(attribute)));
  if (!HeapTupleIsValid(tuple)) return 0;
  uint64_t version = 0;
  ListCell* cell;
  foreach (cell, options_of(tuple)) {
    auto* option = lfirst_node(DefElem, cell);
    if (is_version(option)) version = strtoull(defGetString(option), nullptr, 10);
  }
  ReleaseSysCache(tuple);
  return version;
}

void set_version(Relation catalog, Oid table, int attribute, uint64_t version) {
  if (version == 0 || get_version(table, attribute) == version) return;
  HeapTuple tuple = SearchSysCacheCopy2(ATTNUM, ObjectIdGetDatum(table), Int16GetDatum(int16(attribute)));
  if (!HeapTupleIsValid(tuple)) return;
  List* options = NIL;
  ListCell* cell;
  foreach (cell, options_of(tuple))
    if (!is_version(lfirst_node(DefElem, cell))) options = lappend(options, lfirst(cell));
  char* text = psprintf(UINT64_FORMAT, version);
  options = lappend(options,
                    makeDefElem(pstrdup(ATTRIBUTE_VERSION_ATTOPTION), reinterpret_cast<Node*>(makeString(text)), -1));
  Datum values[Natts_pg_attribute] = {};
  bool nulls[Natts_pg_attribute] = {}, replace[Natts_pg_attribute] = {};
  values[Anum_pg_attribute_attoptions - 1] = transformRelOptions(Datum(0), options, nullptr, nullptr, false, false);
  replace[Anum_pg_attribute_attoptions - 1] = true;
  HeapTuple changed = heap_modify_tuple(tuple, RelationGetDescr(catalog), values, nulls, replace);
  CatalogTupleUpdate(catalog, &changed->t_self, changed);
}

}  // namespace

DdlRelationState* versions_of(Oid table) {
  Relation relation = relation_open(table, AccessShareLock);
  DdlRelationState* state = new_relation_state(table, relation->rd_att->natts);
  relation_close(relation, NoLock);
  for (int i = 0; i < state->natts; ++i) state->versions[i] = get_version(table, i + 1);
  return state;
}

void lower_versions(const DdlRelationState* before) {
  Relation catalog = table_open(AttributeRelationId, RowExclusiveLock);
  for (int i = 0; i < before->natts; ++i) set_version(catalog, before->relation, i + 1, before->versions[i] ? 1 : 0);
  table_close(catalog, RowExclusiveLock);
  CommandCounterIncrement();
}

// A version that is not as lowered was drawn by the statement: its column was added, or has another type now.
void raise_versions(const DdlRelationState* before) {
  Relation catalog = table_open(AttributeRelationId, RowExclusiveLock);
  uint64_t highest = 0;
  for (int i = 0; i < before->natts; ++i) highest = Max(highest, before->versions[i]);
  const DdlRelationState* now = versions_of(before->relation);
  for (int i = 0; i < now->natts; ++i) {
    if (now->versions[i] > 1)
      set_version(catalog, before->relation, i + 1, Max(now->versions[i], highest + 1));
    else if (i < before->natts)
      set_version(catalog, before->relation, i + 1, before->versions[i]);
  }
  table_close(catalog, RowExclusiveLock);
  CommandCounterIncrement();
}

void impose_versions(const DdlRelationState* state) {
  Relation catalog = table_open(AttributeRelationId, RowExclusiveLock);
  for (int i = 0; i < state->natts; ++i) set_version(catalog, state->relation, i + 1, state->versions[i]);
  table_close(catalog, RowExclusiveLock);
}

}  // namespace gcl

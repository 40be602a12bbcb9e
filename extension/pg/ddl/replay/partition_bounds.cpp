#include "extension/pg/ddl/replay/partition_bounds.hpp"

extern "C" {
#include "access/htup_details.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "nodes/nodeFuncs.h"
#include "nodes/primnodes.h"
#include "parser/parser.h"
#include "tcop/tcopprot.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/guc.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
}

namespace gcl {
namespace {

struct Partition {
  const RangeVar* name;
  Oid schema;  // where it is made; InvalidOid: it is attached
  PartitionBoundSpec** bound;
};

void add_partition(List** partitions, const RangeVar* name, Oid schema, PartitionBoundSpec** bound) {
  auto* partition = static_cast<Partition*>(palloc(sizeof(Partition)));
  *partition = {name, schema, bound};
  *partitions = lappend(*partitions, partition);
}

// InvalidOid before the statement has run.
Oid schema_of(const CreateSchemaStmt* statement) {
  if (statement->schemaname) return get_namespace_oid(statement->schemaname, true);
  return get_namespace_oid(GetUserNameFromId(get_rolespec_oid(statement->authrole, false), false), true);
}

List* partitions_of(Node* statement) {
  List* partitions = NIL;
  ListCell* cell;
  if (IsA(statement, CreateStmt)) {
    auto* create = castNode(CreateStmt, statement);
    if (create->partbound)
      add_partition(&partitions, create->relation, RangeVarGetCreationNamespace(create->relation), &create->partbound);
  } else if (IsA(statement, AlterTableStmt)) {
    foreach (cell, castNode(AlterTableStmt, statement)->cmds) {
      const auto* command = lfirst_node(AlterTableCmd, cell);
      if (command->subtype != AT_AttachPartition) continue;
      auto* attached = castNode(PartitionCmd, command->def);
      if (attached->bound) add_partition(&partitions, attached->name, InvalidOid, &attached->bound);
    }
  } else if (IsA(statement, CreateSchemaStmt)) {
    foreach (cell, castNode(CreateSchemaStmt, statement)->schemaElts) {
      if (!IsA(lfirst(cell), CreateStmt)) continue;
      auto* create = lfirst_node(CreateStmt, cell);
      if (create->partbound)
        add_partition(&partitions, create->relation, schema_of(castNode(CreateSchemaStmt, statement)),
                      &create->partbound);
    }
  }
  return partitions;
}

// As an element of an array: a domain's value, written alone, would be checked when it is read.
void append_domain_value(StringInfo to, Oid type, const char* text) {
  StringInfoData array;
  initStringInfo(&array);
  appendStringInfoChar(&array, '{');
  if (!text) appendStringInfoString(&array, "NULL");
  if (text) appendStringInfoChar(&array, '"');
  for (const char* at = text; at && *at; ++at) {
    if (*at == '"' || *at == '\\') appendStringInfoChar(&array, '\\');
    appendStringInfoChar(&array, *at);
  }
  if (text) appendStringInfoChar(&array, '"');
  appendStringInfoChar(&array, '}');
  appendStringInfo(to, "(%s::%s)[1]", quote_literal_cstr(array.data), format_type_be_qualified(get_array_type(type)));
}

void append_value(StringInfo to, const Const* value) {
  Oid output;
  bool is_varlena;
  getTypeOutputInfo(value->consttype, &output, &is_varlena);
  const char* text = value->constisnull ? nullptr : OidOutputFunctionCall(output, value->constvalue);
  if (get_typtype(value->consttype) == TYPTYPE_DOMAIN)
    append_domain_value(to, value->consttype, text);
  else
    appendStringInfoString(to, text ? quote_literal_cstr(text) : "NULL");
}

void append_datum(StringInfo to, Node* datum) {
  if (IsA(datum, Const)) return append_value(to, castNode(Const, datum));
  const auto* of_range = castNode(PartitionRangeDatum, datum);
  if (of_range->kind == PARTITION_RANGE_DATUM_VALUE) return append_value(to, castNode(Const, of_range->value));
  appendStringInfoString(to, of_range->kind == PARTITION_RANGE_DATUM_MINVALUE ? "MINVALUE" : "MAXVALUE");
}

void append_datums(StringInfo to, const char* word, const List* datums) {
  appendStringInfo(to, " %s (", word);
  ListCell* cell;
  foreach (cell, datums) {
    if (cell != list_head(datums)) appendStringInfoString(to, ", ");
    append_datum(to, static_cast<Node*>(lfirst(cell)));
  }
  appendStringInfoChar(to, ')');
}

char* text_of(const PartitionBoundSpec* bound) {
  if (bound->is_default) return pstrdup("DEFAULT");
  StringInfoData text;
  initStringInfo(&text);
  appendStringInfoString(&text, "FOR VALUES");
  if (bound->strategy == PARTITION_STRATEGY_HASH) {
    appendStringInfo(&text, " WITH (MODULUS %d, REMAINDER %d)", bound->modulus, bound->remainder);
  } else if (bound->strategy == PARTITION_STRATEGY_LIST) {
    append_datums(&text, "IN", bound->listdatums);
  } else {
    append_datums(&text, "FROM", bound->lowerdatums);
    append_datums(&text, "TO", bound->upperdatums);
  }
  return text.data;
}

// Null: the relation is no partition.
PartitionBoundSpec* stored_bound(Oid relation) {
  HeapTuple tuple = SearchSysCache1(RELOID, ObjectIdGetDatum(relation));
  if (!HeapTupleIsValid(tuple)) return nullptr;
  bool is_null;
  const Datum bound = SysCacheGetAttr(RELOID, tuple, Anum_pg_class_relpartbound, &is_null);
  char* tree = is_null ? nullptr : TextDatumGetCString(bound);
  ReleaseSysCache(tuple);
  return tree ? castNode(PartitionBoundSpec, stringToNode(tree)) : nullptr;
}

char* bound_of(const Partition* partition) {
  const Oid relation = OidIsValid(partition->schema) ? get_relname_relid(partition->name->relname, partition->schema)
                                                     : RangeVarGetRelid(partition->name, NoLock, true);
  const PartitionBoundSpec* bound = stored_bound(relation);
  return bound ? text_of(bound) : pstrdup("");  // IF NOT EXISTS: nothing was made
}

PartitionBoundSpec* parsed(const char* bound) {
  List* raw = pg_parse_query(psprintf("CREATE TABLE partition PARTITION OF parent %s", bound));
  return castNode(CreateStmt, linitial_node(RawStmt, raw)->stmt)->partbound;
}

}  // namespace

List* bounds_of(Node* statement) {
  List* bounds = NIL;
  const List* partitions = partitions_of(statement);
  if (partitions == NIL) return NIL;
  // Text that is written with these settings is read alike with any others; a record carries the settings that remain
  // (record_settings).
  const int nest = NewGUCNestLevel();
  constexpr const char* kExact[][2] = {
      {"DateStyle", "ISO"}, {"IntervalStyle", "postgres"}, {"extra_float_digits", "3"}, {"bytea_output", "hex"}};
  for (const auto& [name, value] : kExact)
    (void)set_config_option(name, value, PGC_USERSET, PGC_S_SESSION, GUC_ACTION_SAVE, true, 0, false);
  ListCell* cell;
  foreach (cell, partitions) bounds = lappend(bounds, bound_of(static_cast<Partition*>(lfirst(cell))));
  AtEOXact_GUC(true, nest);
  return bounds;
}

void put_bounds(Node* statement, const List* bounds) {
  const List* partitions = partitions_of(statement);
  if (list_length(partitions) != list_length(bounds)) elog(ERROR, "gcl: a DDL record lacks the bounds of partitions");
  for (int i = 0; i < list_length(partitions); ++i)
    *static_cast<Partition*>(list_nth(partitions, i))->bound = parsed(static_cast<const char*>(list_nth(bounds, i)));
}

}  // namespace gcl

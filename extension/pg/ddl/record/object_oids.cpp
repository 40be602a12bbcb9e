#include "extension/pg/ddl/record/object_oids.hpp"

#include <algorithm>

#include "extension/pg/ddl/base/ddl_sql.hpp"

extern "C" {
#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/indexing.h"
#include "catalog/pg_aggregate.h"
#include "catalog/pg_amop.h"
#include "catalog/pg_amproc.h"
#include "catalog/pg_cast.h"
#include "catalog/pg_class.h"
#include "catalog/pg_collation.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_conversion.h"
#include "catalog/pg_default_acl.h"
#include "catalog/pg_enum.h"
#include "catalog/pg_event_trigger.h"
#include "catalog/pg_language.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_opclass.h"
#include "catalog/pg_operator.h"
#include "catalog/pg_opfamily.h"
#include "catalog/pg_policy.h"
#include "catalog/pg_proc.h"
#include "catalog/pg_rewrite.h"
#include "catalog/pg_statistic_ext.h"
#include "catalog/pg_transform.h"
#include "catalog/pg_trigger.h"
#include "catalog/pg_ts_config.h"
#include "catalog/pg_ts_config_map.h"
#include "catalog/pg_ts_dict.h"
#include "catalog/pg_ts_parser.h"
#include "catalog/pg_ts_template.h"
#include "catalog/pg_type.h"
#include "catalog/system_fk_info.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
}

namespace gcl {
namespace {

constexpr Oid kCommonOids[] = {AccessMethodOperatorRelationId,
                               AccessMethodProcedureRelationId,
                               CastRelationId,
                               CollationRelationId,
                               ConstraintRelationId,
                               ConversionRelationId,
                               DefaultAclRelationId,
                               EventTriggerRelationId,
                               LanguageRelationId,
                               NamespaceRelationId,
                               OperatorClassRelationId,
                               OperatorFamilyRelationId,
                               OperatorRelationId,
                               PolicyRelationId,
                               ProcedureRelationId,
                               RelationRelationId,
                               RewriteRelationId,
                               StatisticExtRelationId,
                               TSConfigRelationId,
                               TSDictionaryRelationId,
                               TSParserRelationId,
                               TSTemplateRelationId,
                               TransformRelationId,
                               TriggerRelationId,
                               TypeRelationId};

// What refers to objects of any catalog.
constexpr const char* kCommon[] = {
    "UPDATE pg_catalog.pg_depend SET objid = $2 WHERE classid = $3 AND objid = $1",
    "UPDATE pg_catalog.pg_depend SET refobjid = $2 WHERE refclassid = $3 AND refobjid = $1",
    "UPDATE pg_catalog.pg_shdepend SET objid = $2 WHERE classid = $3 AND objid = $1 AND dbid ="
    " (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database())",
    "UPDATE pg_catalog.pg_description SET objoid = $2 WHERE classoid = $3 AND objoid = $1"};

// Triggers that PostgreSQL makes are named after their OIDs.
constexpr const char* kRenameTrigger =
    "UPDATE pg_catalog.pg_trigger SET tgname = pg_catalog.replace(tgname, $1::pg_catalog.text, $2::pg_catalog.text) "
    "WHERE oid = $2 AND tgisinternal";

// The columns of one catalog that hold OIDs of another one.  Arrays are left out: no statement makes an object and an
// array that names it.
List* columns_that_refer(Oid from, Oid to) {
  List* columns = NIL;
  for (const SysFKRelationship& reference : sys_fk_relationships) {
    if (reference.fk_table != from || reference.pk_table != to || reference.is_array) continue;
    if (strcmp(reference.pk_columns, "{oid}") != 0) continue;
    columns = lappend(columns, pnstrdup(reference.fk_columns + 1, strlen(reference.fk_columns) - 2));
  }
  return columns;
}

void change_references(Oid from, Oid to, const SqlArgument& was, const SqlArgument& wanted) {
  const List* columns = columns_that_refer(from, to);
  if (columns == NIL) return;
  StringInfoData query;
  initStringInfo(&query);
  appendStringInfo(&query, "UPDATE pg_catalog.%s SET ", get_rel_name(from));
  ListCell* cell;
  foreach (cell, columns) {
    const auto* column = static_cast<const char*>(lfirst(cell));
    const char* separator = foreach_current_index(cell) > 0 ? ", " : "";
    appendStringInfo(&query, "%s%s = CASE %s WHEN $1 THEN $2 ELSE %s END", separator, column, column, column);
  }
  appendStringInfoString(&query, " WHERE $1 IN (");
  foreach (cell, columns)
    appendStringInfo(&query, "%s%s", foreach_current_index(cell) > 0 ? ", " : "", static_cast<char*>(lfirst(cell)));
  appendStringInfoChar(&query, ')');
  catalog_change(query.data, {was, wanted});
}

// Catalogs with rows that the statement has made beside relations and types: `objects`, and those whose rows have no
// OID and belong to another one's.
List* changed_catalogs(const List* objects) {
  List* catalogs = list_make2_oid(AggregateRelationId, TSConfigMapRelationId);
  ListCell* cell;
  foreach (cell, objects) catalogs = list_append_unique_oid(catalogs, static_cast<DdlObject*>(lfirst(cell))->catalog);
  return catalogs;
}

void change_oid(Oid catalog, Oid was, Oid wanted, const List* catalogs) {
  const SqlArgument from = oid_argument(was), to = oid_argument(wanted);
  catalog_change(psprintf("UPDATE pg_catalog.%s SET oid = $2 WHERE oid = $1", get_rel_name(catalog)), {from, to});
  for (const char* update : kCommon) catalog_change(update, {from, to, oid_argument(catalog)});
  if (catalog == TriggerRelationId) catalog_change(kRenameTrigger, {from, to});
  ListCell* cell;
  foreach (cell, catalogs) change_references(lfirst_oid(cell), catalog, from, to);
  if (catalog != NamespaceRelationId) return;  // of what else is new, relations and types hold nothing
  change_references(RelationRelationId, catalog, from, to);
  change_references(TypeRelationId, catalog, from, to);
}

// The other half of an operator, that was named before it was made.
List* add_shell(List* shells, Oid shell) {
  return OidIsValid(shell) && !OidIsValid(get_opcode(shell)) ? list_append_unique_oid(shells, shell) : shells;
}

DdlObject* object_at(const List* list, int i) { return static_cast<DdlObject*>(list_nth(list, i)); }

}  // namespace

bool has_common_oid(Oid catalog) {
  return std::find(std::begin(kCommonOids), std::end(kCommonOids), catalog) != std::end(kCommonOids);
}

List* shells_of(const List* made) {
  List* shells = NIL;
  ListCell* cell;
  foreach (cell, made) {
    const auto* object = static_cast<DdlObject*>(lfirst(cell));
    if (object->catalog != OperatorRelationId) continue;
    shells = add_shell(shells, get_commutator(object->oid));
    shells = add_shell(shells, get_negator(object->oid));
  }
  return shells;
}

void impose_object_oids(const List* wanted, const List* made) {
  const List* catalogs = changed_catalogs(made);
  for (int i = 0; i < list_length(wanted); ++i) {
    const DdlObject* object = object_at(wanted, i);
    if (object->oid == object_at(made, i)->oid || !has_common_oid(object->catalog)) continue;
    change_oid(object->catalog, object_at(made, i)->oid, object->oid, catalogs);
  }
  CommandCounterIncrement();
}

List* labels_of(const List* types) {
  List* labels = NIL;
  Relation catalog = table_open(EnumRelationId, AccessShareLock);
  ListCell* cell;
  foreach (cell, types) {
    ScanKeyData key;
    ScanKeyInit(&key, Anum_pg_enum_enumtypid, BTEqualStrategyNumber, F_OIDEQ, ObjectIdGetDatum(lfirst_oid(cell)));
    SysScanDesc scan = systable_beginscan(catalog, EnumTypIdLabelIndexId, true, nullptr, 1, &key);
    while (HeapTuple tuple = systable_getnext(scan)) {
      const auto* form = reinterpret_cast<Form_pg_enum>(GETSTRUCT(tuple));
      auto* label = static_cast<DdlLabel*>(palloc(sizeof(DdlLabel)));
      *label = {form->enumtypid, form->oid, form->enumsortorder, pstrdup(NameStr(form->enumlabel))};
      labels = lappend(labels, label);
    }
    systable_endscan(scan);
  }
  table_close(catalog, AccessShareLock);
  return labels;
}

void impose_labels(const List* labels) {
  ListCell* cell;
  foreach (cell, labels) {
    const auto* label = static_cast<DdlLabel*>(lfirst(cell));
    catalog_change(
        "UPDATE pg_catalog.pg_enum SET oid = $3, enumsortorder = $4 WHERE enumtypid = $1 AND enumlabel = $2 AND oid <> "
        "$3",
        {oid_argument(label->type),
         text_argument(label->name),
         oid_argument(label->oid),
         {FLOAT4OID, Float4GetDatum(label->order)}});
  }
}

}  // namespace gcl

#include "extension/pg/ddl/record/object_oids.hpp"

#include "extension/pg/ddl/base/ddl_sql.hpp"

extern "C" {
#include "access/genam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/indexing.h"
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
#include "catalog/pg_ts_dict.h"
#include "catalog/pg_ts_parser.h"
#include "catalog/pg_ts_template.h"
#include "catalog/pg_type.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
}

namespace gcl {
namespace {

// What one statement can make that refers to an object it has made itself; %s and references by pg_depend are common.
struct Reference {
  Oid catalog;
  const char* update;
};
constexpr Reference kReferences[] = {
    {ConstraintRelationId, "UPDATE pg_catalog.pg_trigger SET tgconstraint = $2 WHERE tgconstraint = $1"},
    {ConstraintRelationId, "UPDATE pg_catalog.pg_constraint SET conparentid = $2 WHERE conparentid = $1"},
    {NamespaceRelationId, "UPDATE pg_catalog.pg_class SET relnamespace = $2 WHERE relnamespace = $1"},
    {NamespaceRelationId, "UPDATE pg_catalog.pg_type SET typnamespace = $2 WHERE typnamespace = $1"},
    {NamespaceRelationId, "UPDATE pg_catalog.pg_constraint SET connamespace = $2 WHERE connamespace = $1"},
    {ProcedureRelationId, "UPDATE pg_catalog.pg_aggregate SET aggfnoid = $2 WHERE aggfnoid = $1"},
    {ProcedureRelationId, "UPDATE pg_catalog.pg_cast SET castfunc = $2 WHERE castfunc = $1"},
    {RewriteRelationId, nullptr},
    // Triggers that PostgreSQL makes are named after their OIDs.
    {TriggerRelationId,
     "UPDATE pg_catalog.pg_trigger SET tgname = pg_catalog.replace(tgname, $1::pg_catalog.text, $2::pg_catalog.text) "
     "WHERE oid = $2 AND tgisinternal"},
    {OperatorRelationId, "UPDATE pg_catalog.pg_operator SET oprcom = $2 WHERE oprcom = $1"},
    {OperatorRelationId, "UPDATE pg_catalog.pg_operator SET oprnegate = $2 WHERE oprnegate = $1"},
    {OperatorFamilyRelationId, "UPDATE pg_catalog.pg_opclass SET opcfamily = $2 WHERE opcfamily = $1"},
    {OperatorFamilyRelationId, "UPDATE pg_catalog.pg_amop SET amopfamily = $2 WHERE amopfamily = $1"},
    {OperatorFamilyRelationId, "UPDATE pg_catalog.pg_amproc SET amprocfamily = $2 WHERE amprocfamily = $1"},
    {TSConfigRelationId, "UPDATE pg_catalog.pg_ts_config_map SET mapcfg = $2 WHERE mapcfg = $1"},
    {OperatorClassRelationId, nullptr},
    {AccessMethodOperatorRelationId, nullptr},
    {AccessMethodProcedureRelationId, nullptr},
    {CollationRelationId, nullptr},
    {ConversionRelationId, nullptr},
    {TSDictionaryRelationId, nullptr},
    {TSParserRelationId, nullptr},
    {TSTemplateRelationId, nullptr},
    {TransformRelationId, nullptr},
    {LanguageRelationId, nullptr},
    {EventTriggerRelationId, nullptr},
    {StatisticExtRelationId, nullptr},
    {TriggerRelationId, "UPDATE pg_catalog.pg_trigger SET tgparentid = $2 WHERE tgparentid = $1"},
    {PolicyRelationId, nullptr},
    {CastRelationId, nullptr},
    {DefaultAclRelationId, nullptr}};

// Who refers to objects of any catalog.
constexpr const char* kCommon[] = {
    "UPDATE pg_catalog.pg_depend SET objid = $2 WHERE classid = $3 AND objid = $1",
    "UPDATE pg_catalog.pg_depend SET refobjid = $2 WHERE refclassid = $3 AND refobjid = $1",
    "UPDATE pg_catalog.pg_shdepend SET objid = $2 WHERE classid = $3 AND objid = $1 AND dbid ="
    " (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database())",
    "UPDATE pg_catalog.pg_description SET objoid = $2 WHERE classoid = $3 AND objoid = $1"};

void change_oid(Oid catalog, Oid was, Oid wanted) {
  const SqlArgument from = oid_argument(was), to = oid_argument(wanted);
  catalog_change(psprintf("UPDATE pg_catalog.%s SET oid = $2 WHERE oid = $1", get_rel_name(catalog)), {from, to});
  for (const char* update : kCommon) catalog_change(update, {from, to, oid_argument(catalog)});
  for (const Reference& reference : kReferences)
    if (reference.catalog == catalog && reference.update) catalog_change(reference.update, {from, to});
}

// The other half of an operator, that was named before anybody made it.
List* add_shell(List* objects, Oid shell) {
  if (!OidIsValid(shell) || OidIsValid(get_opcode(shell))) return objects;
  ListCell* cell;
  foreach (cell, objects)
    if (static_cast<DdlObject*>(lfirst(cell))->oid == shell) return objects;
  auto* object = static_cast<DdlObject*>(palloc(sizeof(DdlObject)));
  *object = {OperatorRelationId, shell};
  return lappend(objects, object);
}

DdlObject* object_at(const List* list, int i) { return static_cast<DdlObject*>(list_nth(list, i)); }

}  // namespace

bool has_common_oid(Oid catalog) {
  if (catalog == RelationRelationId || catalog == TypeRelationId) return true;
  for (const Reference& reference : kReferences)
    if (reference.catalog == catalog) return true;
  return false;
}

List* with_shells(const List* made) {
  List* all = list_copy(made);
  ListCell* cell;
  foreach (cell, made) {
    const auto* object = static_cast<DdlObject*>(lfirst(cell));
    if (object->catalog != OperatorRelationId) continue;
    all = add_shell(all, get_commutator(object->oid));
    all = add_shell(all, get_negator(object->oid));
  }
  return all;
}

void impose_object_oids(const List* wanted, const List* made) {
  bool same = list_length(wanted) == list_length(made);
  for (int i = 0; same && i < list_length(wanted); ++i)
    same = object_at(wanted, i)->catalog == object_at(made, i)->catalog;
  if (!same)
    ereport(ERROR, (errcode(ERRCODE_DATA_CORRUPTED),
                    errmsg("the statement made other objects here than on the primary it came from")));
  for (int i = 0; i < list_length(wanted); ++i) {
    const DdlObject* object = object_at(wanted, i);
    if (object->oid == object_at(made, i)->oid || !has_common_oid(object->catalog)) continue;
    change_oid(object->catalog, object_at(made, i)->oid, object->oid);
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

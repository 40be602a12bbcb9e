#include "extension/pg/ddl/objects/relation_lines.hpp"

#include <span>

#include "extension/pg/catalog/shared_relations.hpp"
#include "extension/pg/ddl/base/catalog_rows.hpp"

extern "C" {
#include "access/htup_details.h"
#include "access/table.h"
#include "catalog/indexing.h"
#include "catalog/pg_am.h"
#include "catalog/pg_attrdef.h"
#include "catalog/pg_attribute.h"
#include "catalog/pg_class.h"
#include "catalog/pg_constraint.h"
#include "catalog/pg_depend.h"
#include "catalog/pg_index.h"
#include "catalog/pg_inherits.h"
#include "catalog/pg_partitioned_table.h"
#include "catalog/pg_policy.h"
#include "catalog/pg_rewrite.h"
#include "catalog/pg_sequence.h"
#include "catalog/pg_trigger.h"
#include "catalog/pg_type.h"
#include "commands/defrem.h"
#include "utils/acl.h"
#include "utils/array.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/syscache.h"
}

namespace gcl {
namespace {

// How a value is told.
enum class As : uint8_t {
  kIs,          // as its type writes it
  kRole,        // by the role's name
  kRoles,       // roles, as a set
  kGrants,      // grants, as a set
  kSchema,      // by the schema's name
  kMethod,      // by the access method's name
  kExpression,  // as written, of the relation that the row belongs to
  kIndexed,     // the same, of the table of an index
  // Of an OID, what is found under it:
  kTrigger,       // the definition, unless the server made it, with OIDs in its name
  kRule,          // the definition
  kPartitionKey,  // the definition
  kToast,         // the options of the TOAST relation
  kRowType,       // the type and its array
  kOwner,         // of a sequence, the column
};

struct Column {
  AttrNumber number;
  As as = As::kIs;
};
using Columns = std::span<const Column>;

// Whether a relation's row in pg_class says that there may be rows elsewhere: false is certain.
using MayHave = bool (*)(const FormData_pg_class& form);

// Rows of a catalog that belong to a relation, found by an index that begins with its OID.
struct Rows {
  const char* what;
  Oid catalog, index;
  AttrNumber relation;
  const char* kinds;  // of relations that have such rows
  Columns columns;
  MayHave may_have = nullptr;
};

constexpr const char* kTables = "rpmfv";
constexpr const char* kHeirs = "rpfiI";
constexpr const char* kAll = "rpmfvciItS";
constexpr const char* kNotToast = "rpmfvciIS";  // a TOAST table has the columns that the server gives it

constexpr Column kClass[] = {{Anum_pg_class_oid},
                             {Anum_pg_class_relname},
                             {Anum_pg_class_relnamespace, As::kSchema},
                             {Anum_pg_class_relowner, As::kRole},
                             {Anum_pg_class_relkind},
                             {Anum_pg_class_relam, As::kMethod},
                             {Anum_pg_class_relpersistence},
                             {Anum_pg_class_relnatts},
                             {Anum_pg_class_reltype, As::kRowType},
                             {Anum_pg_class_relchecks},
                             {Anum_pg_class_reloptions},
                             {Anum_pg_class_relacl, As::kGrants},
                             {Anum_pg_class_relrowsecurity},
                             {Anum_pg_class_relforcerowsecurity},
                             {Anum_pg_class_relreplident},
                             {Anum_pg_class_reltoastrelid},
                             {Anum_pg_class_reltoastrelid, As::kToast},
                             {Anum_pg_class_relpartbound, As::kExpression}};
constexpr Column kToastOptions[] = {{Anum_pg_class_reloptions}};
constexpr Column kRowType[] = {{Anum_pg_type_oid},      {Anum_pg_type_typname}, {Anum_pg_type_typtype},
                               {Anum_pg_type_typarray}, {Anum_pg_type_typelem}, {Anum_pg_type_typrelid}};
constexpr Column kAttribute[] = {
    {Anum_pg_attribute_attrelid},   {Anum_pg_attribute_attnum},         {Anum_pg_attribute_attname},
    {Anum_pg_attribute_atttypid},   {Anum_pg_attribute_atttypmod},      {Anum_pg_attribute_attcollation},
    {Anum_pg_attribute_attnotnull}, {Anum_pg_attribute_atthasdef},      {Anum_pg_attribute_attisdropped},
    {Anum_pg_attribute_attislocal}, {Anum_pg_attribute_attinhcount},    {Anum_pg_attribute_attmissingval},
    {Anum_pg_attribute_attoptions}, {Anum_pg_attribute_attidentity},    {Anum_pg_attribute_attgenerated},
    {Anum_pg_attribute_attstorage}, {Anum_pg_attribute_attcompression}, {Anum_pg_attribute_attacl, As::kGrants}};
constexpr Column kDefault[] = {
    {Anum_pg_attrdef_adrelid}, {Anum_pg_attrdef_adnum}, {Anum_pg_attrdef_adbin, As::kExpression}};
constexpr Column kParent[] = {{Anum_pg_inherits_inhrelid},
                              {Anum_pg_inherits_inhparent},
                              {Anum_pg_inherits_inhseqno},
                              {Anum_pg_inherits_inhdetachpending}};
constexpr Column kPartitioned[] = {{Anum_pg_partitioned_table_partrelid},
                                   {Anum_pg_partitioned_table_partdefid},
                                   {Anum_pg_partitioned_table_partrelid, As::kPartitionKey},
                                   {Anum_pg_partitioned_table_partclass},
                                   {Anum_pg_partitioned_table_partcollation}};
constexpr Column kSequence[] = {
    {Anum_pg_sequence_seqrelid},     {Anum_pg_sequence_seqtypid}, {Anum_pg_sequence_seqstart},
    {Anum_pg_sequence_seqincrement}, {Anum_pg_sequence_seqmin},   {Anum_pg_sequence_seqmax},
    {Anum_pg_sequence_seqcache},     {Anum_pg_sequence_seqcycle}, {Anum_pg_sequence_seqrelid, As::kOwner}};
constexpr Column kOwner[] = {
    {Anum_pg_depend_refclassid}, {Anum_pg_depend_refobjid}, {Anum_pg_depend_refobjsubid}, {Anum_pg_depend_deptype}};
constexpr Column kIndex[] = {{Anum_pg_index_indexrelid},
                             {Anum_pg_index_indrelid},
                             {Anum_pg_index_indkey},
                             {Anum_pg_index_indclass},
                             {Anum_pg_index_indcollation},
                             {Anum_pg_index_indoption},
                             {Anum_pg_index_indisunique},
                             {Anum_pg_index_indisprimary},
                             {Anum_pg_index_indisvalid},
                             {Anum_pg_index_indcheckxmin},
                             {Anum_pg_index_indexprs, As::kIndexed},
                             {Anum_pg_index_indpred, As::kIndexed}};
constexpr Column kConstraint[] = {{Anum_pg_constraint_oid},
                                  {Anum_pg_constraint_conrelid},
                                  {Anum_pg_constraint_conname},
                                  {Anum_pg_constraint_contype},
                                  {Anum_pg_constraint_convalidated},
                                  {Anum_pg_constraint_condeferrable},
                                  {Anum_pg_constraint_condeferred},
                                  {Anum_pg_constraint_conindid},
                                  {Anum_pg_constraint_conparentid},
                                  {Anum_pg_constraint_conislocal},
                                  {Anum_pg_constraint_coninhcount},
                                  {Anum_pg_constraint_connoinherit},
                                  {Anum_pg_constraint_confrelid},
                                  {Anum_pg_constraint_confupdtype},
                                  {Anum_pg_constraint_confdeltype},
                                  {Anum_pg_constraint_confmatchtype},
                                  {Anum_pg_constraint_conkey},
                                  {Anum_pg_constraint_confkey},
                                  {Anum_pg_constraint_conbin, As::kExpression}};
constexpr Column kTrigger[] = {{Anum_pg_trigger_oid},          {Anum_pg_trigger_tgparentid},
                               {Anum_pg_trigger_tgenabled},    {Anum_pg_trigger_tgisinternal},
                               {Anum_pg_trigger_tgconstraint}, {Anum_pg_trigger_oid, As::kTrigger}};
constexpr Column kPolicy[] = {{Anum_pg_policy_oid},
                              {Anum_pg_policy_polrelid},
                              {Anum_pg_policy_polname},
                              {Anum_pg_policy_polcmd},
                              {Anum_pg_policy_polpermissive},
                              {Anum_pg_policy_polroles, As::kRoles},
                              {Anum_pg_policy_polqual, As::kExpression},
                              {Anum_pg_policy_polwithcheck, As::kExpression}};
constexpr Column kRule[] = {{Anum_pg_rewrite_oid}, {Anum_pg_rewrite_ev_enabled}, {Anum_pg_rewrite_oid, As::kRule}};

bool may_have_indexes(const FormData_pg_class& form) { return form.relhasindex; }
bool may_have_triggers(const FormData_pg_class& form) { return form.relhastriggers; }
bool may_have_rules(const FormData_pg_class& form) { return form.relhasrules; }

constexpr Rows kRows[] = {
    {"class", RelationRelationId, ClassOidIndexId, Anum_pg_class_oid, kAll, kClass},
    {"attribute", AttributeRelationId, AttributeRelidNumIndexId, Anum_pg_attribute_attrelid, kNotToast, kAttribute},
    {"default", AttrDefaultRelationId, AttrDefaultIndexId, Anum_pg_attrdef_adrelid, kTables, kDefault},
    {"parent", InheritsRelationId, InheritsRelidSeqnoIndexId, Anum_pg_inherits_inhrelid, kHeirs, kParent},
    {"partitioned", PartitionedRelationId, PartitionedRelidIndexId, Anum_pg_partitioned_table_partrelid, "p",
     kPartitioned},
    {"sequence", SequenceRelationId, SequenceRelidIndexId, Anum_pg_sequence_seqrelid, "S", kSequence},
    {"index", IndexRelationId, IndexRelidIndexId, Anum_pg_index_indexrelid, "iI", kIndex},
    {"index of", IndexRelationId, IndexIndrelidIndexId, Anum_pg_index_indrelid, "rpmt", kIndex, may_have_indexes},
    {"constraint", ConstraintRelationId, ConstraintRelidTypidNameIndexId, Anum_pg_constraint_conrelid, kTables,
     kConstraint},
    {"trigger", TriggerRelationId, TriggerRelidNameIndexId, Anum_pg_trigger_tgrelid, kTables, kTrigger,
     may_have_triggers},
    {"policy", PolicyRelationId, PolicyPolrelidPolnameIndexId, Anum_pg_policy_polrelid, kTables, kPolicy},
    {"rule", RewriteRelationId, RewriteRelRulenameIndexId, Anum_pg_rewrite_ev_class, kTables, kRule, may_have_rules}};

struct Row {
  HeapTuple tuple;
  TupleDesc description;
  Oid relation;  // that it belongs to
};

void write_columns(StringInfo to, const Row& row, Columns columns);

// Null: the function's answer is.
char* definition(Oid function, int arguments, Datum first, Datum second = 0) {
  FmgrInfo info;
  fmgr_info(function, &info);
  LOCAL_FCINFO(call, 2);
  InitFunctionCallInfoData(*call, &info, short(arguments), InvalidOid, nullptr, nullptr);
  call->args[0] = {first, false};
  call->args[1] = {second, false};
  const Datum answer = FunctionCallInvoke(call);
  return call->isnull ? nullptr : TextDatumGetCString(answer);
}

char* expression(Datum value, Oid relation) {
  return definition(F_PG_GET_EXPR_PG_NODE_TREE_OID, 2, value, ObjectIdGetDatum(relation));
}

int compare_texts(const ListCell* a, const ListCell* b) {
  return strcmp(static_cast<char*>(lfirst(a)), static_cast<char*>(lfirst(b)));
}

char* as_set(List* texts) {
  StringInfoData set;
  initStringInfo(&set);
  list_sort(texts, compare_texts);
  ListCell* cell;
  foreach (cell, texts) appendStringInfo(&set, "%s,", static_cast<char*>(lfirst(cell)));
  return set.data;
}

char* grants(Datum value) {
  Acl* acl = DatumGetAclP(value);
  List* texts = NIL;
  for (int i = 0; i < ACL_NUM(acl); ++i)
    texts = lappend(texts, DatumGetCString(DirectFunctionCall1(aclitemout, PointerGetDatum(&ACL_DAT(acl)[i]))));
  return as_set(texts);
}

const char* role(Oid oid) {
  const char* name = GetUserNameFromId(oid, true);
  return name ? name : "?";
}

char* roles(Datum value) {
  ArrayType* array = DatumGetArrayTypeP(value);
  const auto* oids = reinterpret_cast<const Oid*>(ARR_DATA_PTR(array));
  List* texts = NIL;
  for (int i = 0; i < ArrayGetNItems(ARR_NDIM(array), ARR_DIMS(array)); ++i)
    texts = lappend(texts, pstrdup(OidIsValid(oids[i]) ? role(oids[i]) : ""));
  return as_set(texts);
}

char* columns_under(int cache, Oid oid, Columns columns) {
  HeapTuple tuple = SearchSysCache1(cache, ObjectIdGetDatum(oid));
  if (!HeapTupleIsValid(tuple)) return nullptr;
  StringInfoData text;
  initStringInfo(&text);
  Relation catalog = table_open(tuple->t_tableOid, AccessShareLock);
  write_columns(&text, {tuple, RelationGetDescr(catalog), InvalidOid}, columns);
  table_close(catalog, AccessShareLock);
  ReleaseSysCache(tuple);
  return text.data;
}

char* row_type(Oid type) {
  const char* own = columns_under(TYPEOID, type, kRowType);
  if (!own) return nullptr;
  const char* array = columns_under(TYPEOID, get_array_type(type), kRowType);
  return psprintf("%s/%s", own, array ? array : "");
}

char* owner(Oid sequence) {
  StringInfoData text;
  initStringInfo(&text);
  Relation catalog = table_open(DependRelationId, AccessShareLock);
  const auto write = [&](HeapTuple tuple) {
    const char kind = reinterpret_cast<Form_pg_depend>(GETSTRUCT(tuple))->deptype;
    if (kind == DEPENDENCY_AUTO || kind == DEPENDENCY_INTERNAL)
      write_columns(&text, {tuple, RelationGetDescr(catalog), sequence}, kOwner);
  };
  each_catalog_row(catalog, DependDependerIndexId,
                   {{Anum_pg_depend_classid, RelationRelationId}, {Anum_pg_depend_objid, sequence}}, write);
  table_close(catalog, AccessShareLock);
  return text.data;
}

// The most frequent types are written without their output functions.
void write_value(StringInfo to, Oid type, Datum value) {
  char text[12];
  switch (type) {
    case BOOLOID:
      return appendStringInfoChar(to, DatumGetBool(value) ? 't' : 'f');
    case CHAROID:
      return appendStringInfo(to, "%d", DatumGetChar(value));
    case NAMEOID:
      return appendStringInfoString(to, reinterpret_cast<const NameData*>(DatumGetPointer(value))->data);
    case INT2OID:
      return appendBinaryStringInfo(to, text, pg_ltoa(DatumGetInt16(value), text));
    case INT4OID:
      return appendBinaryStringInfo(to, text, pg_ltoa(DatumGetInt32(value), text));
    case OIDOID:
      return appendBinaryStringInfo(to, text, pg_ultoa_n(DatumGetObjectId(value), text));
    default: {
      Oid function;
      bool is_varlena;
      getTypeOutputInfo(type, &function, &is_varlena);
      appendStringInfoString(to, OidOutputFunctionCall(function, value));
    }
  }
}

const char* told(As as, const Row& row, Datum value) {
  switch (as) {
    case As::kIs:
      break;
    case As::kRole:
      return role(DatumGetObjectId(value));
    case As::kRoles:
      return roles(value);
    case As::kGrants:
      return grants(value);
    case As::kSchema:
      return get_namespace_name(DatumGetObjectId(value));
    case As::kMethod:
      return get_am_name(DatumGetObjectId(value));
    case As::kExpression:
      return expression(value, row.relation);
    case As::kIndexed:
      return expression(value, reinterpret_cast<Form_pg_index>(GETSTRUCT(row.tuple))->indrelid);
    case As::kTrigger:
      return reinterpret_cast<Form_pg_trigger>(GETSTRUCT(row.tuple))->tgisinternal
                 ? nullptr
                 : definition(F_PG_GET_TRIGGERDEF_OID, 1, value);
    case As::kRule:
      return definition(F_PG_GET_RULEDEF_OID, 1, value);
    case As::kPartitionKey:
      return definition(F_PG_GET_PARTKEYDEF, 1, value);
    case As::kToast:
      return columns_under(RELOID, DatumGetObjectId(value), kToastOptions);
    case As::kRowType:
      return row_type(DatumGetObjectId(value));
    case As::kOwner:
      return owner(DatumGetObjectId(value));
  }
  return nullptr;
}

void write_columns(StringInfo to, const Row& row, Columns columns) {
  const size_t count = size_t(row.description->natts);
  auto* values = static_cast<Datum*>(palloc(count * sizeof(Datum)));
  auto* nulls = static_cast<bool*>(palloc(count * sizeof(bool)));
  heap_deform_tuple(row.tuple, row.description, values, nulls);
  for (const Column& column : columns) {
    const int i = column.number - 1;
    appendStringInfoChar(to, '|');
    if (nulls[i]) continue;
    if (column.as == As::kIs) {
      appendStringInfoChar(to, '=');
      write_value(to, TupleDescAttr(row.description, i)->atttypid, values[i]);
    } else if (const char* text = told(column.as, row, values[i])) {
      appendStringInfoChar(to, '=');
      appendStringInfoString(to, text);
    }
  }
}

// System columns are alike in all tables, but for what is granted on them.
bool is_systems_own(const Rows& rows, HeapTuple tuple) {
  return rows.catalog == AttributeRelationId && reinterpret_cast<Form_pg_attribute>(GETSTRUCT(tuple))->attnum < 0 &&
         heap_attisnull(tuple, Anum_pg_attribute_attacl, nullptr);
}

}  // namespace

List* lines_of_relations(const List* relations) {
  List* lines = NIL;
  List* forms = NIL;  // FormData_pg_class*
  ListCell* cell;
  foreach (cell, relations) {
    auto* form = static_cast<FormData_pg_class*>(palloc(sizeof(FormData_pg_class)));
    if (find_class(lfirst_oid(cell), form)) forms = lappend(forms, form);
  }
  for (const Rows& rows : kRows) {
    Relation catalog = nullptr;
    foreach (cell, forms) {
      const auto& form = *static_cast<FormData_pg_class*>(lfirst(cell));
      if (!strchr(rows.kinds, form.relkind) || (rows.may_have && !rows.may_have(form))) continue;
      if (!catalog) catalog = table_open(rows.catalog, AccessShareLock);
      each_catalog_row(catalog, rows.index, {{rows.relation, form.oid}}, [&](HeapTuple tuple) {
        if (is_systems_own(rows, tuple)) return;
        StringInfoData line;
        initStringInfo(&line);
        appendStringInfoString(&line, rows.what);
        write_columns(&line, {tuple, RelationGetDescr(catalog), form.oid}, rows.columns);
        lines = lappend(lines, line.data);
      });
    }
    if (catalog) table_close(catalog, AccessShareLock);
  }
  return lines;
}

}  // namespace gcl

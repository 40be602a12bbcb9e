#include "extension/pg/ddl/classify/object_scope.hpp"

#include "extension/pg/catalog/names.hpp"
#include "extension/pg/catalog/shared_relations.hpp"
#include "extension/pg/ddl/classify/ddl_plan.hpp"
#include "extension/pg/ddl/classify/publications.hpp"
#include "extension/pg/ddl/classify/rights.hpp"
#include "extension/pg/ddl/objects/domain_columns.hpp"
#include "extension/pg/ddl/objects/shared_or_local.hpp"

extern "C" {
#include "access/relation.h"
#include "catalog/namespace.h"
#include "catalog/objectaddress.h"
#include "catalog/pg_class.h"
#include "commands/trigger.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "parser/parse_type.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/relcache.h"
}

namespace gcl {
namespace {

Oid named(List* names) { return find_relation(makeRangeVarFromNameList(names)); }

enum class Where : uint8_t { kNowhere, kHere, kEverywhere };

Where of_relation(Oid relation) {
  if (!OidIsValid(relation)) return Where::kNowhere;
  return is_cluster_relation(relation) ? Where::kEverywhere : Where::kHere;
}

// Where the object is that `name` stands for, in the ways of the statements on objects of that type.
Where find_object(ObjectType type, Node* name) {
  if ((type == OBJECT_TYPE || type == OBJECT_DOMAIN) && IsA(name, List))
    name = reinterpret_cast<Node*>(makeTypeNameFromNameList(castNode(List, name)));
  if (IsA(name, RangeVar)) return of_relation(find_relation(castNode(RangeVar, name)));
  switch (type) {
    case OBJECT_TABLE:
    case OBJECT_INDEX:
    case OBJECT_VIEW:
    case OBJECT_MATVIEW:
    case OBJECT_SEQUENCE:
    case OBJECT_FOREIGN_TABLE:
      return of_relation(named(castNode(List, name)));
    case OBJECT_COLUMN:
    case OBJECT_TRIGGER:
    case OBJECT_RULE:
    case OBJECT_POLICY:
    case OBJECT_TABCONSTRAINT: {
      List* names = castNode(List, name);
      return list_length(names) < 2 ? Where::kNowhere
                                    : of_relation(named(list_truncate(list_copy(names), list_length(names) - 1)));
    }
    case OBJECT_FUNCTION:
    case OBJECT_PROCEDURE:
    case OBJECT_ROUTINE:
    case OBJECT_AGGREGATE:
    case OBJECT_TYPE:
    case OBJECT_DOMAIN:
    case OBJECT_SCHEMA:
    case OBJECT_OPERATOR:
    case OBJECT_OPCLASS:
    case OBJECT_OPFAMILY:
    case OBJECT_CAST:
    case OBJECT_COLLATION:
    case OBJECT_CONVERSION:
    case OBJECT_TSCONFIGURATION:
    case OBJECT_TSDICTIONARY:
    case OBJECT_TSPARSER:
    case OBJECT_TSTEMPLATE:
    case OBJECT_TRANSFORM:
    case OBJECT_STATISTIC_EXT:
    case OBJECT_EVENT_TRIGGER: {
      Relation relation = nullptr;
      const ObjectAddress found = get_object_address(type, name, &relation, AccessShareLock, true);
      if (relation) relation_close(relation, NoLock);
      if (!OidIsValid(found.objectId)) return Where::kNowhere;
      return is_local_object(found.classId, found.objectId) ? Where::kHere : Where::kEverywhere;
    }
    case OBJECT_DOMCONSTRAINT: {  // its domain; to COMMENT, its domain as a type and its own name
      auto* domain = static_cast<Node*>(linitial(castNode(List, name)));
      return find_object(OBJECT_DOMAIN, IsA(domain, TypeName) ? domain : name);
    }
    case OBJECT_LANGUAGE:
      return Where::kEverywhere;
    default:  // tablespaces, extensions, foreign servers: what is each primary's own
      return Where::kHere;
  }
}

}  // namespace

DdlPlan plan_for(ObjectType type, Node* name) {
  return name && find_object(type, name) == Where::kEverywhere ? on_shared(everywhere()) : local();
}

// One statement cannot be half local.
DdlPlan plan_for_all(ObjectType type, const List* names) {
  bool here = false, all = false;
  ListCell* cell;
  foreach (cell, names) {
    const Where where = find_object(type, static_cast<Node*>(lfirst(cell)));
    here |= where == Where::kHere;
    all |= where == Where::kEverywhere;
  }
  if (here && all)
    refuse_ddl("one statement on local objects and on those of all primaries", "Use a statement for each kind.");
  return all ? on_shared(everywhere()) : local();
}

namespace {

// Columns of composite types are relations'; a domain's constraints are checked against the rows that there are, in the
// tables that have columns of it.  Under the DDL lock no further gcl table gets one.
DdlPlan plan_alter_domain(const AlterDomainStmt* statement) {
  TypeName* name = makeTypeNameFromNameList(statement->typeName);
  DdlPlan plan = plan_for(OBJECT_DOMAIN, reinterpret_cast<Node*>(name));
  if (plan.scope == DdlScope::kLocal) return plan;
  if (statement->subtype != 'C' && statement->subtype != 'V' && statement->subtype != 'O') return plan;
  ListCell* cell;
  foreach (cell, relations_with_domain(typenameTypeId(nullptr, name)))
    if (is_shared_table(lfirst_oid(cell))) add_target(&plan, lfirst_oid(cell), ShareLock);
  return plan;
}

DdlPlan locking(DdlPlan plan, Oid relation, LOCKMODE mode) {
  add_target(&plan, relation, mode);
  return plan;
}

DdlPlan plan_statistics(const CreateStatsStmt* statement) {
  ListCell* cell;
  foreach (cell, statement->relations) {
    if (!IsA(lfirst(cell), RangeVar)) continue;  // PostgreSQL says what is wrong
    const Oid table = find_relation(lfirst_node(RangeVar, cell));
    if (of_relation(table) == Where::kEverywhere) return locking(everywhere(), table, ShareUpdateExclusiveLock);
  }
  return local();
}

// An event trigger that fires in replays would change what other primaries have decided.
DdlPlan plan_event_trigger(const AlterEventTrigStmt* statement) {
  auto* name = makeString(statement->trigname);
  if (statement->tgenabled == TRIGGER_FIRES_ALWAYS || statement->tgenabled == TRIGGER_FIRES_ON_REPLICA)
    refuse_ddl("event triggers that fire on replicas", "It fires on the primary whose user ran the statement.");
  return plan_for(OBJECT_EVENT_TRIGGER, reinterpret_cast<Node*>(name));
}

bool is_ours(const char* extension) { return strcmp(extension, kExtensionName) == 0; }

// An extension is a primary's own: what belongs to all does not go with it.
DdlPlan plan_dependence(const AlterObjectDependsStmt* statement) {
  Where where;
  Oid relation = InvalidOid;
  if (statement->relation)
    where = of_relation(relation = find_relation(statement->relation));
  else
    where = find_object(statement->objectType, statement->object);
  if (where != Where::kEverywhere) return local();
  if (!is_ours(strVal(statement->extname)))
    refuse_ddl("DEPENDS ON EXTENSION of an extension other than gcl", "An extension is each primary's own.");
  return OidIsValid(relation) ? locking(everywhere(), relation, AccessExclusiveLock) : everywhere();
}

DdlPlan plan_member(const AlterExtensionContentsStmt* statement) {
  if (is_ours(statement->extname)) refuse_ddl("ALTER EXTENSION gcl", "Its members are those it comes with.");
  if (statement->action > 0 && find_object(ObjectType(statement->objtype), statement->object) == Where::kEverywhere &&
      OidIsValid(gcl_access_method()))
    refuse_ddl("ALTER EXTENSION ... ADD of what all primaries have", "An extension is each primary's own.");
  return local();
}

// One that replaces another may add columns to it.
DdlPlan plan_view(const ViewStmt* statement) {
  if (statement->view->relpersistence == RELPERSISTENCE_TEMP) return local();
  DdlPlan plan = everywhere();
  const Oid old = statement->replace ? find_where_made(statement->view) : InvalidOid;
  if (!OidIsValid(old) || get_rel_relkind(old) != RELKIND_VIEW) return plan;
  if (!is_cluster_relation(old)) return local();
  plan = locking(plan, old, AccessExclusiveLock);
  plan.changes_columns = true;
  plan.was_shared = true;
  return plan;
}

DdlPlan plan_function(const CreateFunctionStmt* statement) {
  if (!statement->replace) return everywhere();
  auto* name = makeNode(ObjectWithArgs);
  name->objname = statement->funcname;
  ListCell* cell;
  foreach (cell, statement->parameters) {
    const auto* parameter = lfirst_node(FunctionParameter, cell);
    if (parameter->mode != FUNC_PARAM_OUT && parameter->mode != FUNC_PARAM_TABLE)
      name->objargs = lappend(name->objargs, parameter->argType);
  }
  const Where old = find_object(OBJECT_ROUTINE, reinterpret_cast<Node*>(name));
  if (old == Where::kHere) return local();
  DdlPlan plan = everywhere();
  plan.was_shared = old == Where::kEverywhere;
  return plan;
}

// What has no such name yet may have it under the DDL lock.
DdlPlan plan_alteration(ObjectType type, Node* name) {
  const Where where = find_object(type, name);
  if (where == Where::kHere) return local();
  return where == Where::kEverywhere ? on_shared(everywhere()) : everywhere();
}

DdlPlan plan_alter_function(const AlterFunctionStmt* statement) {
  return plan_alteration(statement->objtype, reinterpret_cast<Node*>(statement->func));
}
DdlPlan plan_alter_operator(const AlterOperatorStmt* statement) {
  return plan_alteration(OBJECT_OPERATOR, reinterpret_cast<Node*>(statement->opername));
}
DdlPlan plan_alter_family(const AlterOpFamilyStmt* statement) {
  List* name = lcons(makeString(statement->amname), list_copy(statement->opfamilyname));
  return plan_alteration(OBJECT_OPFAMILY, reinterpret_cast<Node*>(name));
}
DdlPlan plan_alter_type(const AlterTypeStmt* statement) {
  return plan_alteration(OBJECT_TYPE, reinterpret_cast<Node*>(statement->typeName));
}
DdlPlan plan_alter_enum(const AlterEnumStmt* statement) {
  return plan_alteration(OBJECT_TYPE, reinterpret_cast<Node*>(statement->typeName));
}
DdlPlan plan_alter_configuration(const AlterTSConfigurationStmt* statement) {
  return plan_alteration(OBJECT_TSCONFIGURATION, reinterpret_cast<Node*>(statement->cfgname));
}
DdlPlan plan_alter_dictionary(const AlterTSDictionaryStmt* statement) {
  return plan_alteration(OBJECT_TSDICTIONARY, reinterpret_cast<Node*>(statement->dictname));
}

// By the name of one object (ddl.named-objects-judged-before).
DdlPlan plan_owner(const AlterOwnerStmt* statement) { return plan_for(statement->objectType, statement->object); }
DdlPlan plan_comment(const CommentStmt* statement) { return plan_for(statement->objtype, statement->object); }
DdlPlan plan_label(const SecLabelStmt* statement) { return plan_for(statement->objtype, statement->object); }
DdlPlan plan_collation(const AlterCollationStmt* statement) {
  return plan_for(OBJECT_COLLATION, reinterpret_cast<Node*>(statement->collname));
}
DdlPlan plan_alter_statistics(const AlterStatsStmt* statement) {
  return plan_for(OBJECT_STATISTIC_EXT, reinterpret_cast<Node*>(statement->defnames));
}

DdlPlan plan_move_all(const AlterTableMoveAllStmt*) {
  if (shared_tables(InvalidOid) != NIL) refuse_ddl("ALTER ... ALL IN TABLESPACE", "Move the local tables one by one.");
  return local();
}

DdlPlan plan_publication(const Node* statement) {
  check_publication(statement);
  return local();
}

// Where nothing else is said (ddl.made-objects-judged-after).
constexpr StatementKind kObjectKinds[] = {
    {T_AlterCollationStmt, planned_by<plan_collation>},
    {T_AlterDefaultPrivilegesStmt, planned_everywhere},
    {T_AlterDomainStmt, planned_by<plan_alter_domain>, rights_for<AlterDomainStmt>},
    {T_AlterEnumStmt, planned_by<plan_alter_enum>},
    {T_AlterEventTrigStmt, planned_by<plan_event_trigger>},
    {T_AlterExtensionContentsStmt, planned_by<plan_member>},
    {T_AlterFunctionStmt, planned_by<plan_alter_function>, nullptr, AskedAgain::kTies},
    {T_AlterObjectDependsStmt, planned_by<plan_dependence>, rights_for<AlterObjectDependsStmt>},
    {T_AlterOpFamilyStmt, planned_by<plan_alter_family>, nullptr, AskedAgain::kTies},
    {T_AlterOperatorStmt, planned_by<plan_alter_operator>, nullptr, AskedAgain::kTies},
    {T_AlterOwnerStmt, planned_by<plan_owner>},
    {T_AlterPublicationStmt, planned_by<plan_publication>},
    {T_AlterStatsStmt, planned_by<plan_alter_statistics>},
    {T_AlterTSConfigurationStmt, planned_by<plan_alter_configuration>, nullptr, AskedAgain::kTies},
    {T_AlterTSDictionaryStmt, planned_by<plan_alter_dictionary>, nullptr, AskedAgain::kTies},
    {T_AlterTableMoveAllStmt, planned_by<plan_move_all>},
    {T_AlterTypeStmt, planned_by<plan_alter_type>, nullptr, AskedAgain::kTies},
    {T_CommentStmt, planned_by<plan_comment>, nullptr, AskedAgain::kNames},
    {T_CompositeTypeStmt, planned_everywhere},
    {T_CreateCastStmt, planned_everywhere},
    {T_CreateConversionStmt, planned_everywhere},
    {T_CreateDomainStmt, planned_everywhere},
    {T_CreateEnumStmt, planned_everywhere},
    {T_CreateEventTrigStmt, planned_everywhere},
    {T_CreateFunctionStmt, planned_by<plan_function>, nullptr, AskedAgain::kTies},
    {T_CreateOpClassStmt, planned_everywhere},
    {T_CreateOpFamilyStmt, planned_everywhere},
    {T_CreatePLangStmt, planned_everywhere},
    {T_CreatePublicationStmt, planned_by<plan_publication>},
    {T_CreateRangeStmt, planned_everywhere},
    {T_CreateStatsStmt, planned_by<plan_statistics>, rights_for<CreateStatsStmt>, AskedAgain::kNames},
    {T_CreateTransformStmt, planned_everywhere},
    {T_DefineStmt, planned_everywhere},
    {T_SecLabelStmt, planned_by<plan_label>, nullptr, AskedAgain::kNames},
    {T_ViewStmt, planned_by<plan_view>, rights_for<ViewStmt>, AskedAgain::kTies},
};

}  // namespace

std::span<const StatementKind> object_kinds() { return kObjectKinds; }

bool replaces(const Node* statement) { return IsA(statement, ViewStmt) || IsA(statement, CreateFunctionStmt); }

}  // namespace gcl

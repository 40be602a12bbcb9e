#include "extension/pg/ddl/classify/object_scope.hpp"

#include "extension/pg/catalog/names.hpp"
#include "extension/pg/catalog/shared_relations.hpp"
#include "extension/pg/ddl/classify/ddl_plan.hpp"
#include "extension/pg/ddl/classify/publications.hpp"
#include "extension/pg/ddl/objects/locality.hpp"

extern "C" {
#include "access/relation.h"
#include "catalog/namespace.h"
#include "catalog/objectaddress.h"
#include "catalog/pg_class.h"
#include "commands/trigger.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/relcache.h"
}

namespace gcl {
namespace {

// Tables whose columns may have to be looked at when a domain gets a constraint.
DdlPlan everywhere_with_tables() {
  DdlPlan plan = everywhere();
  ListCell* cell;
  foreach (cell, shared_tables(InvalidOid)) add_target(&plan, lfirst_oid(cell), ShareLock);
  return plan;
}

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
    case OBJECT_DOMCONSTRAINT:
    case OBJECT_LANGUAGE:
      return Where::kEverywhere;
    default:  // tablespaces, extensions, foreign servers: what is each primary's own
      return Where::kHere;
  }
}

DdlPlan plan_for(ObjectType type, Node* name) {
  return name && find_object(type, name) == Where::kEverywhere ? everywhere() : local();
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
  return all ? everywhere() : local();
}

// Columns of composite types are relations'; a domain's constraints are checked against the rows that there are.
DdlPlan plan_alter_domain(const AlterDomainStmt* statement) {
  const DdlPlan plan = plan_for(OBJECT_DOMAIN, reinterpret_cast<Node*>(makeTypeNameFromNameList(statement->typeName)));
  if (plan.scope == DdlScope::kLocal) return plan;
  const bool checks = statement->subtype == 'C' || statement->subtype == 'V' || statement->subtype == 'O';
  return checks ? everywhere_with_tables() : plan;
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

// It would fire for what other primaries do, and change what they have decided.
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
  plan.replaces = true;
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
  plan.replaces = old == Where::kEverywhere;
  return plan;
}

}  // namespace

bool may_be_object(NodeTag tag) {
  switch (tag) {
    case T_CreateFunctionStmt:
    case T_AlterFunctionStmt:
    case T_CompositeTypeStmt:
    case T_CreateEnumStmt:
    case T_AlterEnumStmt:
    case T_CreateRangeStmt:
    case T_CreateDomainStmt:
    case T_AlterDomainStmt:
    case T_AlterTypeStmt:
    case T_DefineStmt:
    case T_ViewStmt:
    case T_CreateCastStmt:
    case T_CreateOpClassStmt:
    case T_CreateOpFamilyStmt:
    case T_AlterOpFamilyStmt:
    case T_AlterOperatorStmt:
    case T_CreateConversionStmt:
    case T_CreateTransformStmt:
    case T_AlterTSConfigurationStmt:
    case T_AlterTSDictionaryStmt:
    case T_AlterDefaultPrivilegesStmt:
    case T_AlterOwnerStmt:
    case T_CommentStmt:
    case T_SecLabelStmt:
    case T_CreateStatsStmt:
    case T_AlterStatsStmt:
    case T_CreateEventTrigStmt:
    case T_AlterEventTrigStmt:
    case T_CreatePLangStmt:
    case T_AlterCollationStmt:
    case T_AlterDatabaseSetStmt:
    case T_AlterObjectDependsStmt:
    case T_AlterExtensionContentsStmt:
    case T_AlterTableMoveAllStmt:
    case T_CreatePublicationStmt:
    case T_AlterPublicationStmt:
      return true;
    default:
      return false;
  }
}

DdlPlan plan_object(const Node* statement) {
  switch (nodeTag(statement)) {
    case T_DropStmt:
      return plan_for_all(as<DropStmt>(statement)->removeType, as<DropStmt>(statement)->objects);
    case T_GrantStmt:
      return plan_for_all(as<GrantStmt>(statement)->objtype, as<GrantStmt>(statement)->objects);
    case T_RenameStmt:
      return plan_for(as<RenameStmt>(statement)->renameType, as<RenameStmt>(statement)->object);
    case T_AlterObjectSchemaStmt:
      return plan_for(as<AlterObjectSchemaStmt>(statement)->objectType, as<AlterObjectSchemaStmt>(statement)->object);
    case T_AlterOwnerStmt:
      return plan_for(as<AlterOwnerStmt>(statement)->objectType, as<AlterOwnerStmt>(statement)->object);
    case T_CommentStmt:
      return plan_for(as<CommentStmt>(statement)->objtype, as<CommentStmt>(statement)->object);
    case T_SecLabelStmt:
      return plan_for(as<SecLabelStmt>(statement)->objtype, as<SecLabelStmt>(statement)->object);
    case T_AlterCollationStmt:
      return plan_for(OBJECT_COLLATION, reinterpret_cast<Node*>(as<AlterCollationStmt>(statement)->collname));
    case T_CreateStatsStmt:
      return plan_statistics(as<CreateStatsStmt>(statement));
    case T_AlterStatsStmt:
      return plan_for(OBJECT_STATISTIC_EXT, reinterpret_cast<Node*>(as<AlterStatsStmt>(statement)->defnames));
    case T_AlterEventTrigStmt:
      return plan_event_trigger(as<AlterEventTrigStmt>(statement));
    case T_AlterObjectDependsStmt:
      return plan_dependence(as<AlterObjectDependsStmt>(statement));
    case T_AlterExtensionContentsStmt:
      return plan_member(as<AlterExtensionContentsStmt>(statement));
    case T_AlterTableMoveAllStmt:
      if (shared_tables(InvalidOid) != NIL)
        refuse_ddl("ALTER ... ALL IN TABLESPACE", "Move the local tables one by one.");
      return local();
    case T_CreatePublicationStmt:
    case T_AlterPublicationStmt:
      check_publication(statement);
      return local();
    case T_AlterDomainStmt:
      return plan_alter_domain(as<AlterDomainStmt>(statement));
    case T_ViewStmt:
      return plan_view(as<ViewStmt>(statement));
    case T_CreateFunctionStmt:
      return plan_function(as<CreateFunctionStmt>(statement));
    default:
      return may_be_object(nodeTag(statement)) ? everywhere() : local();
  }
}

}  // namespace gcl

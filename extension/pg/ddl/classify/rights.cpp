#include "extension/pg/ddl/classify/rights.hpp"

#include "extension/pg/catalog/names.hpp"

extern "C" {
#include "access/relation.h"
#include "catalog/objectaddress.h"
#include "catalog/pg_authid.h"
#include "catalog/pg_database.h"
#include "catalog/pg_inherits.h"
#include "commands/dbcommands.h"
#include "nodes/makefuncs.h"
#include "utils/acl.h"
#include "utils/lsyscache.h"
#include "utils/syscache.h"
}

namespace gcl {
namespace {

bool owns(Oid relation) { return !OidIsValid(relation) || pg_class_ownercheck(relation, GetUserId()); }

bool owns(const RangeVar* name) { return name == nullptr || owns(find_relation(name)); }

// For what the server checks behind its lock: in its words, but before the lock.
void require(bool may, AclResult lacks, const RangeVar* name) {
  if (may) return;
  const Oid relation = find_relation(name);
  aclcheck_error(lacks, get_relkind_objtype(get_rel_relkind(relation)), get_rel_name(relation));
}

void require_owner(const RangeVar* name) {
  if (name != nullptr) require(owns(name), ACLCHECK_NOT_OWNER, name);
}

void require_owner_of_all(const List* names) {
  ListCell* cell;
  foreach (cell, names) require_owner(lfirst_node(RangeVar, cell));
}

void require_owner_of_measured(const List* relations) {
  ListCell* cell;
  foreach (cell, relations)
    if (IsA(lfirst(cell), RangeVar)) require_owner(lfirst_node(RangeVar, cell));
}

bool owns_or_may(const RangeVar* name, AclMode mode) {
  const Oid relation = find_relation(name);
  return owns(relation) || pg_class_aclcheck(relation, GetUserId(), mode) == ACLCHECK_OK;
}

bool may_truncate(const TruncateStmt* statement) {
  ListCell* cell;
  foreach (cell, statement->relations)
    if (!owns_or_may(lfirst_node(RangeVar, cell), ACL_TRUNCATE)) return false;
  return true;
}

bool is_child(const RangeVar* child, const RangeVar* parent) {
  const Oid one = find_relation(child), other = find_relation(parent);
  return !OidIsValid(one) || !OidIsValid(other) || list_member_oid(find_inheritance_children(other, NoLock), one);
}

bool may_alter(const AlterTableStmt* statement) {
  if (!owns(statement->relation)) return false;
  ListCell* cell;
  foreach (cell, statement->cmds) {
    const auto* command = lfirst_node(AlterTableCmd, cell);
    if (command->subtype == AT_AttachPartition) require_owner(castNode(PartitionCmd, command->def)->name);
    if (command->subtype == AT_AddInherit) require_owner(castNode(RangeVar, command->def));
    // Another table would be locked to hear that it is none.
    if (command->subtype == AT_DropInherit && !is_child(statement->relation, castNode(RangeVar, command->def)))
      return false;
    if (command->subtype == AT_DetachPartition &&
        !is_child(castNode(PartitionCmd, command->def)->name, statement->relation))
      return false;
  }
  return true;
}

bool owns_schema(Oid schema) { return OidIsValid(schema) && pg_namespace_ownercheck(schema, GetUserId()); }

// Raises if the user owns neither the object nor, where that suffices, its schema.
void require_ownership(ObjectType type, Node* object, bool schema_suffices) {
  Relation relation = nullptr;
  const ObjectAddress found = get_object_address(type, object, &relation, AccessShareLock, true);
  if (OidIsValid(found.objectId) && !(schema_suffices && owns_schema(get_object_namespace(&found))))
    check_object_ownership(GetUserId(), type, found, object, relation);
  if (relation) relation_close(relation, NoLock);
}

void require_domain(List* name) {
  require_ownership(OBJECT_DOMAIN, reinterpret_cast<Node*>(makeTypeNameFromNameList(name)), false);
}

// The owner of a schema may drop what is in it.
bool may_drop_relation(List* names) {
  const Oid relation = find_relation(makeRangeVarFromNameList(names));
  return owns(relation) || owns_schema(get_rel_namespace(relation));
}

bool may_drop(const DropStmt* statement) {
  ListCell* cell;
  foreach (cell, statement->objects) {
    Node* object = static_cast<Node*>(lfirst(cell));
    switch (statement->removeType) {
      case OBJECT_TABLE:
      case OBJECT_INDEX:
      case OBJECT_SEQUENCE:
      case OBJECT_VIEW:
      case OBJECT_MATVIEW:
      case OBJECT_FOREIGN_TABLE:
        if (!may_drop_relation(castNode(List, object))) return false;
        break;
      case OBJECT_TRIGGER:
      case OBJECT_RULE:
      case OBJECT_POLICY: {
        List* names = list_copy(castNode(List, object));
        if (list_length(names) < 2) break;  // PostgreSQL says what is wrong
        if (!owns(makeRangeVarFromNameList(list_truncate(names, list_length(names) - 1)))) return false;
        break;
      }
      default:
        require_ownership(statement->removeType, object, true);
    }
  }
  return true;
}

bool may_make_roles() { return has_createrole_privilege(GetUserId()); }

bool may_make_databases() {
  if (superuser()) return true;
  const HeapTuple tuple = SearchSysCache1(AUTHOID, ObjectIdGetDatum(GetUserId()));
  if (!HeapTupleIsValid(tuple)) return false;
  const bool may = reinterpret_cast<Form_pg_authid>(GETSTRUCT(tuple))->rolcreatedb;
  ReleaseSysCache(tuple);
  return may;
}

// Also of one that is not there.
bool owns_database(const char* name) {
  const Oid database = get_database_oid(name, true);
  return !OidIsValid(database) || pg_database_ownercheck(database, GetUserId());
}

Oid owner_of_database(const char* name) {
  const HeapTuple tuple = SearchSysCache1(DATABASEOID, ObjectIdGetDatum(get_database_oid(name, true)));
  if (!HeapTupleIsValid(tuple)) return InvalidOid;
  const Oid owner = reinterpret_cast<Form_pg_database>(GETSTRUCT(tuple))->datdba;
  ReleaseSysCache(tuple);
  return owner;
}

// Every role may change some of what it is itself.
bool is_self_or_unknown(const RoleSpec* role) {
  const Oid oid = get_rolespec_oid(role, true);
  return !OidIsValid(oid) || oid == GetUserId();
}

// Of an object that is named alone, for COMMENT and SECURITY LABEL; all but roles and databases are judged later.
bool may_describe(ObjectType type, const Node* name) {
  if (type == OBJECT_DATABASE) return owns_database(strVal(name));
  return type != OBJECT_ROLE || may_make_roles() || !OidIsValid(get_role_oid(strVal(name), true));
}

bool has_roles(const List* specs) {
  ListCell* cell;
  foreach (cell, specs)
    if (!has_privs_of_role(GetUserId(), get_rolespec_oid(lfirst_node(RoleSpec, cell), false))) return false;
  return true;
}

}  // namespace

bool has_rights_for(const AlterTableStmt* statement) { return may_alter(statement); }

bool has_rights_for(const RenameStmt* statement) {
  if (statement->renameType == OBJECT_ROLE) return may_make_roles();
  if (statement->renameType == OBJECT_DATABASE) return owns_database(statement->subname) && may_make_databases();
  return owns(statement->relation);
}

bool has_rights_for(const AlterObjectSchemaStmt* statement) { return owns(statement->relation); }

bool has_rights_for(const AlterSeqStmt* statement) {
  require_owner(statement->sequence);
  return true;
}

bool has_rights_for(const AlterObjectDependsStmt* statement) {
  require_owner(statement->relation);
  return true;
}

bool has_rights_for(const RuleStmt* statement) {
  require_owner(statement->relation);
  return true;
}

bool has_rights_for(const CreatePolicyStmt* statement) { return owns(statement->table); }

bool has_rights_for(const AlterPolicyStmt* statement) { return owns(statement->table); }

bool has_rights_for(const ViewStmt* statement) { return !statement->replace || owns(find_where_made(statement->view)); }

bool has_rights_for(const IndexStmt* statement) { return owns(statement->relation); }

bool has_rights_for(const CreateStmt* statement) {
  const bool is_there = statement->if_not_exists && OidIsValid(find_where_made(statement->relation));
  if (!is_there) require_owner_of_all(statement->inhRelations);
  return true;
}

bool has_rights_for(const CreateStatsStmt* statement) {
  require_owner_of_measured(statement->relations);
  return true;
}

bool has_rights_for(const CreateTrigStmt* statement) {
  require(owns_or_may(statement->relation, ACL_TRIGGER), ACLCHECK_NO_PRIV, statement->relation);
  return true;
}

bool has_rights_for(const TruncateStmt* statement) { return may_truncate(statement); }

bool has_rights_for(const DropStmt* statement) { return may_drop(statement); }

bool has_rights_for(const AlterDomainStmt* statement) {
  require_domain(statement->typeName);
  return true;
}

bool has_rights_for(const DropOwnedStmt* statement) { return has_roles(statement->roles); }

bool has_rights_for(const ReassignOwnedStmt* statement) { return has_roles(statement->roles); }

// --- roles and databases

bool has_rights_for(const AlterDatabaseSetStmt* statement) { return owns_database(statement->dbname); }

bool has_rights_for(const AlterDatabaseStmt* statement) { return owns_database(statement->dbname); }

bool has_rights_for(const AlterOwnerStmt* statement) {
  if (statement->objectType != OBJECT_DATABASE) return true;
  const char* database = strVal(statement->object);
  return owns_database(database) || get_rolespec_oid(statement->newowner, true) == owner_of_database(database);
}

bool has_rights_for(const AlterRoleSetStmt* statement) {
  if (statement->role) return may_make_roles() || is_self_or_unknown(statement->role);
  return statement->database ? owns_database(statement->database) : superuser();
}

bool has_rights_for(const AlterRoleStmt* statement) { return may_make_roles() || is_self_or_unknown(statement->role); }

bool has_rights_for(const CommentStmt* statement) { return may_describe(statement->objtype, statement->object); }

bool has_rights_for(const CreateRoleStmt*) { return may_make_roles(); }

bool has_rights_for(const CreatedbStmt*) { return may_make_databases(); }

bool has_rights_for(const DropRoleStmt*) { return may_make_roles(); }

bool has_rights_for(const DropdbStmt* statement) { return owns_database(statement->dbname); }

bool has_rights_for(const GrantRoleStmt* statement) {
  if (may_make_roles()) return true;
  ListCell* cell;
  foreach (cell, statement->granted_roles) {
    const AccessPriv* granted = lfirst_node(AccessPriv, cell);
    const Oid role = granted->priv_name ? get_role_oid(granted->priv_name, true) : InvalidOid;
    if (OidIsValid(role) && !is_admin_of_role(GetUserId(), role)) return false;
  }
  return true;
}

bool has_rights_for(const SecLabelStmt* statement) { return may_describe(statement->objtype, statement->object); }

}  // namespace gcl

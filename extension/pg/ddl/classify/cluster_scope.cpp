#include "extension/pg/ddl/classify/cluster_scope.hpp"

#include "extension/pg/ddl/base/ddl_port.hpp"
#include "extension/pg/ddl/classify/rights.hpp"
#include "extension/pg/runtime/ddl_hooks.hpp"

extern "C" {
#include "commands/dbcommands.h"
#include "mb/pg_wchar.h"
}

namespace gcl {
namespace {

bool is_type_of_cluster(ObjectType type) {
  return type == OBJECT_ROLE || type == OBJECT_DATABASE || type == OBJECT_PARAMETER_ACL;
}

bool names_tablespace(const List* options) {
  ListCell* cell;
  foreach (cell, options)
    if (strcmp(lfirst_node(DefElem, cell)->defname, "tablespace") == 0) return true;
  return false;
}

bool always(const Node*) { return true; }
bool keeps_tablespace(const Node* statement) {  // tablespaces are each primary's own
  return !names_tablespace(as<AlterDatabaseStmt>(statement)->options);
}
bool names_some(const Node* statement) {
  const auto* grant = as<GrantStmt>(statement);
  return grant->targtype == ACL_TARGET_OBJECT && is_type_of_cluster(grant->objtype);
}
template <class Statement, ObjectType Statement::*type>
bool by_type(const Node* statement) {
  return is_type_of_cluster(as<Statement>(statement)->*type);
}

template <class Statement, char* Statement::*name>
const char* named(const Node* statement) {
  return as<Statement>(statement)->*name;
}
template <class Statement, ObjectType Statement::*type, Node* Statement::*object>
const char* if_database(const Node* statement) {
  return as<Statement>(statement)->*type == OBJECT_DATABASE ? strVal(as<Statement>(statement)->*object) : nullptr;
}
const char* renamed_database(const Node* statement) {
  const auto* rename = as<RenameStmt>(statement);
  return rename->renameType == OBJECT_DATABASE ? rename->subname : nullptr;
}
const char* no_database(const Node*) { return nullptr; }

struct ClusterKind {
  NodeTag tag;
  bool (*is_of_cluster)(const Node*);
  // The one that it is about and another primary may not have; null: none, or several.
  const char* (*database)(const Node*);
  bool (*has_rights)(const Node*);  // rights.hpp; null: the server may be content with having granted nothing
};

constexpr ClusterKind kClusterKinds[] = {
    {T_AlterDatabaseSetStmt, always, named<AlterDatabaseSetStmt, &AlterDatabaseSetStmt::dbname>,
     rights_for<AlterDatabaseSetStmt>},
    {T_AlterDatabaseStmt, keeps_tablespace, named<AlterDatabaseStmt, &AlterDatabaseStmt::dbname>,
     rights_for<AlterDatabaseStmt>},
    {T_AlterOwnerStmt, by_type<AlterOwnerStmt, &AlterOwnerStmt::objectType>,
     if_database<AlterOwnerStmt, &AlterOwnerStmt::objectType, &AlterOwnerStmt::object>, rights_for<AlterOwnerStmt>},
    {T_AlterRoleSetStmt, always, named<AlterRoleSetStmt, &AlterRoleSetStmt::database>, rights_for<AlterRoleSetStmt>},
    {T_AlterRoleStmt, always, no_database, rights_for<AlterRoleStmt>},
    {T_CommentStmt, by_type<CommentStmt, &CommentStmt::objtype>,
     if_database<CommentStmt, &CommentStmt::objtype, &CommentStmt::object>, rights_for<CommentStmt>},
    {T_CreateRoleStmt, always, no_database, rights_for<CreateRoleStmt>},
    {T_CreatedbStmt, always, named<CreatedbStmt, &CreatedbStmt::dbname>, rights_for<CreatedbStmt>},
    {T_DropRoleStmt, always, no_database, rights_for<DropRoleStmt>},
    {T_DropdbStmt, always, named<DropdbStmt, &DropdbStmt::dbname>, rights_for<DropdbStmt>},
    {T_GrantRoleStmt, always, no_database, rights_for<GrantRoleStmt>},
    {T_GrantStmt, names_some, no_database, nullptr},
    {T_RenameStmt, by_type<RenameStmt, &RenameStmt::renameType>, renamed_database, rights_for<RenameStmt>},
    {T_SecLabelStmt, by_type<SecLabelStmt, &SecLabelStmt::objtype>,
     if_database<SecLabelStmt, &SecLabelStmt::objtype, &SecLabelStmt::object>, rights_for<SecLabelStmt>},
};

// Null: never of the cluster.
const ClusterKind* cluster_kind_of(const Node* statement) {
  for (const ClusterKind& kind : kClusterKinds)
    if (kind.tag == nodeTag(statement)) return &kind;
  return nullptr;
}

constexpr const char* kLocalHint =
    "A superuser's SET gcl.local_administration = on lets statements on roles and databases be done on this primary "
    "only; the others have to be brought in line by hand.";

}  // namespace

bool is_of_cluster(const Node* statement) {
  const ClusterKind* kind = cluster_kind_of(statement);
  return kind && kind->is_of_cluster(statement);
}

bool has_rights_of_cluster(const Node* statement) {
  const ClusterKind* kind = cluster_kind_of(statement);
  return kind->has_rights == nullptr || kind->has_rights(statement);
}

DdlPlan plan_of_cluster(const Node* statement) {
  DdlPlan plan = everywhere();
  plan.shared = true;
  plan.database = cluster_kind_of(statement)->database(statement);
  if (plan.database) plan.to_database = DdlDatabase::kAlters;
  if (plan.database && IsA(statement, RenameStmt)) plan.to_database = DdlDatabase::kRenames;
  if (IsA(statement, CreatedbStmt)) plan.to_database = DdlDatabase::kMakes;
  if (IsA(statement, DropdbStmt)) plan.to_database = DdlDatabase::kDrops;
  return plan;
}

void require_cluster() {
  const bool fenced = !ddl_pool_attached() || ddl_pool_fenced();
  if (!fenced && ddl_serving()) return;
  const char* why = fenced ? psprintf("The gcl pool is fenced: %s", ddl_fence_reason())
                           : "This primary has not caught up with the DDL of the others; the server's log says why.";
  ereport(ERROR, (errcode(fenced ? ERRCODE_CRASH_SHUTDOWN : ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                  errmsg("roles and databases are every primary's, and the others cannot be reached"),
                  errdetail("%s", why), errhint("%s", kLocalHint)));
}

void require_common_encoding(const char* text) {
  if (GetDatabaseEncoding() == ddl_pool_encoding()) return;
  for (const char* at = text; *at != '\0'; ++at)
    if (IS_HIGHBIT_SET(*at))
      ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                      errmsg("a statement that reaches all primaries has characters beyond ASCII, and the encoding of "
                             "database \"%s\" is not the pool's",
                             get_database_name(MyDatabaseId)),
                      errhint("Run it in a database whose encoding is that of gcl.locale.")));
}

}  // namespace gcl

#include "extension/pg/ddl/lock_table.hpp"

#include "extension/pg/ddl/ddl.hpp"
#include "extension/pg/ddl/ddl_exchange.hpp"
#include "extension/pg/ddl/ddl_plan.hpp"
#include "extension/pg/ddl/ddl_results.hpp"
#include "extension/pg/ddl/names.hpp"
#include "extension/pg/ddl/shared_relations.hpp"

extern "C" {
#include "access/relation.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "nodes/nodeFuncs.h"
#include "rewrite/rewriteHandler.h"
#include "utils/acl.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
}

namespace gcl {
namespace {

struct Search {
  LOCKMODE mode;
  List* seen;     // relations looked at; a view may lead back to itself
  List* targets;  // DdlTarget*
};

void look_at(Search* search, Oid relation, bool children);

bool look_at_query(Node* node, Search* search) {
  if (node == nullptr) return false;
  if (!IsA(node, Query)) return expression_tree_walker(node, reinterpret_cast<bool (*)()>(look_at_query), search);
  Query* query = castNode(Query, node);
  ListCell* cell;
  foreach (cell, query->rtable) {
    const auto* entry = lfirst_node(RangeTblEntry, cell);
    if (entry->rtekind == RTE_RELATION) look_at(search, entry->relid, entry->inh);
  }
  return query_tree_walker(query, reinterpret_cast<bool (*)()>(look_at_query), search, QTW_IGNORE_JOINALIASES);
}

// LOCK TABLE of a view locks what the view reads.
void look_at_view(Search* search, Oid view) {
  Relation relation = relation_open(view, AccessShareLock);
  auto* query = static_cast<Query*>(copyObjectImpl(get_view_query(relation)));
  relation_close(relation, AccessShareLock);
  (void)look_at_query(reinterpret_cast<Node*>(query), search);
}

void look_at(Search* search, Oid relation, bool children) {
  if (list_member_oid(search->seen, relation)) return;
  search->seen = lappend_oid(search->seen, relation);
  if (get_rel_relkind(relation) == RELKIND_VIEW) return look_at_view(search, relation);
  if (is_shared_table(relation)) search->targets = with_target(search->targets, relation, search->mode);
  if (!children) return;
  ListCell* cell;
  foreach (cell, find_inheritance_children(relation, NoLock)) look_at(search, lfirst_oid(cell), true);
}

// NIL also if the user may not lock: then nobody else is to be disturbed, and the statement says so by itself.
List* targets_of(const LockStmt* statement) {
  Search search{statement->mode, NIL, NIL};
  if (statement->mode <= RowExclusiveLock) return NIL;
  ListCell* cell;
  foreach (cell, statement->relations) {
    const auto* name = lfirst_node(RangeVar, cell);
    const Oid relation = find_relation(name);
    if (!OidIsValid(relation)) return NIL;
    if (pg_class_aclcheck(relation, GetUserId(), ACL_UPDATE | ACL_DELETE | ACL_TRUNCATE) != ACLCHECK_OK) return NIL;
    look_at(&search, relation, name->inh);
  }
  return search.targets;
}

}  // namespace

bool names_shared_tables(const LockStmt* statement) {
  return OidIsValid(gcl_access_method()) && targets_of(statement) != NIL;
}

bool lock_table_everywhere(const LockStmt* statement) {
  if (!names_shared_tables(statement)) return false;
  if (capturing())
    ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                    errmsg("LOCK TABLE on gcl tables inside a DDL statement is not supported")));
  ddl_require_serving();
  open_exchange(statement->nowait);
  // Others may have changed what the names mean while we waited for the lock.
  AcceptInvalidationMessages();
  List* targets = targets_of(statement);
  if (targets != NIL) send_locks(targets, statement->nowait);
  return targets != NIL;
}

}  // namespace gcl

#include "extension/pg/ddl/coordinate/lock_table.hpp"

#include "extension/pg/catalog/names.hpp"
#include "extension/pg/catalog/shared_relations.hpp"
#include "extension/pg/ddl/classify/ddl_plan.hpp"
#include "extension/pg/ddl/coordinate/ddl_outbox.hpp"
#include "extension/pg/ddl/coordinate/ddl_transaction.hpp"
#include "extension/pg/ddl/replay/ddl_results.hpp"
#include "extension/pg/runtime/ddl_hooks.hpp"

extern "C" {
#include "access/relation.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "catalog/pg_inherits.h"
#include "nodes/nodeFuncs.h"
#include "rewrite/rewriteHandler.h"
#include "storage/lmgr.h"
#include "utils/acl.h"
#include "utils/inval.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
}

namespace gcl {
namespace {

struct Search {
  LOCKMODE mode;
  Oid user;       // must have the right to lock what is met
  List* seen;     // relations looked at; a view may lead back to itself
  List* targets;  // DdlTarget*
  bool refused;
};

// The server's rule for modes above ROW EXCLUSIVE.
bool may_lock(Oid relation, Oid user) {
  return pg_class_aclcheck(relation, user, ACL_UPDATE | ACL_DELETE | ACL_TRUNCATE) == ACLCHECK_OK;
}

bool is_locked_in_views(char kind) {
  return kind == RELKIND_RELATION || kind == RELKIND_PARTITIONED_TABLE || kind == RELKIND_VIEW;
}

void look_at(Search* search, Oid relation, bool children);

bool look_at_query(Node* node, Search* search) {
  if (node == nullptr) return false;
  if (!IsA(node, Query)) return expression_tree_walker(node, reinterpret_cast<bool (*)()>(look_at_query), search);
  Query* query = castNode(Query, node);
  ListCell* cell;
  foreach (cell, query->rtable) {
    const auto* entry = lfirst_node(RangeTblEntry, cell);
    if (entry->rtekind != RTE_RELATION || !is_locked_in_views(get_rel_relkind(entry->relid))) continue;
    search->refused |= !may_lock(entry->relid, search->user);
    if (search->refused) return true;
    look_at(search, entry->relid, entry->inh);
  }
  return query_tree_walker(query, reinterpret_cast<bool (*)()>(look_at_query), search, QTW_IGNORE_JOINALIASES);
}

// LOCK TABLE of a view locks what the view reads, with the rights of the view's owner.
void look_at_view(Search* search, Oid view) {
  Relation relation = relation_open(view, AccessShareLock);
  auto* query = static_cast<Query*>(copyObjectImpl(get_view_query(relation)));
  const Oid caller = search->user;
  search->user = RelationHasSecurityInvoker(relation) ? GetUserId() : relation->rd_rel->relowner;
  relation_close(relation, AccessShareLock);
  (void)look_at_query(reinterpret_cast<Node*>(query), search);
  search->user = caller;
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

// NIL also if the user may not lock: then no other session is to be disturbed, and the server's statement refuses.
List* targets_of(const LockStmt* statement) {
  Search search{statement->mode, GetUserId(), NIL, NIL, false};
  if (statement->mode <= RowExclusiveLock) return NIL;
  ListCell* cell;
  foreach (cell, statement->relations) {
    const auto* name = lfirst_node(RangeVar, cell);
    const Oid relation = find_relation(name);
    if (!OidIsValid(relation)) return NIL;
    if (!may_lock(relation, search.user)) return NIL;
    look_at(&search, relation, name->inh);
    if (search.refused) return NIL;
  }
  return search.targets;
}

// Waits for the locks on this primary, and lets them go again (ddl.lock-table-waits-locally): they are taken for good
// when the first primary's are.
void wait_at_home(List* targets, bool nowait) {
  ListCell* cell;
  foreach (cell, targets) {
    const auto* target = static_cast<DdlTarget*>(lfirst(cell));
    if (!nowait)
      LockRelationOid(target->relation, target->mode);
    else if (!ConditionalLockRelationOid(target->relation, target->mode))
      ereport(ERROR, (errcode(ERRCODE_LOCK_NOT_AVAILABLE),
                      errmsg("could not obtain lock on relation \"%s\"", get_rel_name(target->relation))));
    UnlockRelationOid(target->relation, target->mode);
  }
}

bool covers(List* asked, List* targets) {
  ListCell* cell;
  foreach (cell, targets) {
    const auto* wanted = static_cast<DdlTarget*>(lfirst(cell));
    bool found = false;
    ListCell* other;
    foreach (other, asked) found |= static_cast<DdlTarget*>(lfirst(other))->relation == wanted->relation;
    if (!found) return false;
  }
  return true;
}

}  // namespace

SharedLock begin_shared_lock(const LockStmt* statement) {
  SharedLock lock{statement, NIL, true};
  if (!OidIsValid(gcl_access_method())) return lock;
  List* targets = targets_of(statement);
  if (targets == NIL) return lock;
  if (capturing())
    ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                    errmsg("LOCK TABLE on gcl tables inside a DDL statement is not supported")));
  ddl_require_serving();
  if (statement->nowait) wait_for_ended_ddl_transactions();
  lock.starts_here = first_primary_is_this();
  if (lock.starts_here) return lock;
  wait_at_home(targets, statement->nowait);
  open_ddl_transaction(DdlRight::kLocks, statement->nowait);
  lock.asked = targets;
  ask_first(lock.asked, statement->nowait);
  return lock;
}

// The names keep their present meaning until the transaction ends.
void end_shared_lock(const SharedLock& lock) {
  if (!OidIsValid(gcl_access_method())) return;
  List* targets = targets_of(lock.statement);
  if (targets == NIL) return;
  ddl_require_serving();
  open_ddl_transaction(DdlRight::kLocks, lock.statement->nowait);
  if (lock.starts_here || !covers(lock.asked, targets)) ask_first(targets, lock.statement->nowait);
  ask_others(targets, lock.statement->nowait);
  require_decided(targets);
}

}  // namespace gcl

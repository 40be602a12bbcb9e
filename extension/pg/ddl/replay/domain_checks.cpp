#include "extension/pg/ddl/replay/domain_checks.hpp"

#include "extension/pg/catalog/shared_relations.hpp"
#include "extension/pg/ddl/objects/domain_columns.hpp"

extern "C" {
#include "access/relation.h"
#include "catalog/pg_class.h"
#include "nodes/makefuncs.h"
#include "parser/parse_type.h"
#include "storage/bufmgr.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
}

namespace gcl {
namespace {

bool is_local_table(Oid relation) {
  FormData_pg_class form;
  return find_class(relation, &form) && (form.relkind == RELKIND_RELATION || form.relkind == RELKIND_MATVIEW) &&
         form.relam != gcl_access_method();
}

// Locked before it is looked at, as the server would lock it, no rows come until this transaction ends.
bool has_rows(Oid table) {
  Relation relation = try_relation_open(table, ShareLock);
  if (!relation) return false;
  const bool rows = RelationGetNumberOfBlocks(relation) > 0;
  relation_close(relation, NoLock);
  return rows;
}

char* name_of(Oid relation) {
  return quote_qualified_identifier(get_namespace_name(get_rel_namespace(relation)), get_rel_name(relation));
}

bool checks_rows(const AlterDomainStmt* statement) {
  if (statement->subtype == 'V') return true;
  return statement->subtype == 'C' && !castNode(Constraint, statement->def)->skip_validation;
}

}  // namespace

void refuse_checks_of_local_rows(const Node* statement) {
  if (!IsA(statement, AlterDomainStmt)) return;
  const auto* altered = reinterpret_cast<const AlterDomainStmt*>(statement);
  if (!checks_rows(altered)) return;
  const Oid domain = typenameTypeId(nullptr, makeTypeNameFromNameList(altered->typeName));
  ListCell* cell;
  foreach (cell, relations_with_domain(domain)) {
    const Oid table = lfirst_oid(cell);
    if (!is_local_table(table) || !has_rows(table)) continue;
    ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                    errmsg("local table \"%s\" has rows that the constraint is not checked against", name_of(table)),
                    errdetail("No primary evaluates expressions of another one's statement.  Use NOT VALID, or drop "
                              "the column.")));
  }
}

}  // namespace gcl

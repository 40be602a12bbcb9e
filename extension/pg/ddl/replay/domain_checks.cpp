#include "extension/pg/ddl/replay/domain_checks.hpp"

#include "extension/pg/catalog/shared_relations.hpp"
#include "extension/pg/ddl/base/ddl_sql.hpp"

extern "C" {
#include "nodes/makefuncs.h"
#include "parser/parse_type.h"
}

namespace gcl {
namespace {

constexpr const char* kLocalRowsQuery = R"sql(
  WITH RECURSIVE domains(oid) AS (
    SELECT $1 UNION SELECT t.oid FROM pg_catalog.pg_type t JOIN domains d ON t.typbasetype = d.oid)
  SELECT c.oid::pg_catalog.regclass FROM pg_catalog.pg_attribute a JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
    WHERE a.atttypid IN (SELECT oid FROM domains) AND NOT a.attisdropped AND c.relkind IN ('r', 'm') AND c.relam <> $2
      AND pg_catalog.pg_relation_size(c.oid) > 0
    ORDER BY c.oid LIMIT 1)sql";

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
  const char* table = catalog_text(kLocalRowsQuery, {oid_argument(domain), oid_argument(gcl_access_method())});
  if (!table) return;
  ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                  errmsg("local table \"%s\" has rows that the constraint is not checked against", table),
                  errdetail("No primary evaluates expressions of another one's statement.  Use NOT VALID, or drop the "
                            "column.")));
}

}  // namespace gcl

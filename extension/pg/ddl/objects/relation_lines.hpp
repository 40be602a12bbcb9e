// What the catalogs say of a relation, as lines of text that are equal on all primaries (ddl.digest-ignores-vacuum,
// ddl.digest-compares-meanings).
#pragma once

#include "extension/pg/ddl/base/pg.hpp"

namespace gcl {

// char*: the lines of these relations, in no order; in the caller's context.
// REQUIRES: fixed settings (ddl_sql.hpp), and an active snapshot that sees what the statement did.
List* lines_of_relations(const List* relations);

}  // namespace gcl

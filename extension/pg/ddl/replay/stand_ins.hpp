// Expressions that stand in a replay for what it must not evaluate (ddl.coordinator-ships-constants), as the parser
// would have made them.
#pragma once

#include "extension/pg/ddl/base/pg.hpp"

namespace gcl {

Node* is_null(Node* expression);                                  // expression IS NULL
Node* case_when(Node* condition, Node* result, Node* otherwise);  // CASE WHEN ... THEN ... ELSE ... END; null: no ELSE

}  // namespace gcl

// A constraint of a domain is checked against the rows that there are: against those of gcl tables by the coordinator,
// against those of a primary's own tables by that primary alone (ddl.no-user-code).
#pragma once

#include "extension/pg/ddl/base/pg.hpp"

namespace gcl {

// In a replay, before the statement and after it: the server's scan comes in between, and may find a table that is not
// yet there before.  Locks the local tables that it looks at, until the transaction ends.  ERROR: one of them has rows
// that the statement would have to check.
void refuse_checks_of_local_rows(const Node* statement);

}  // namespace gcl

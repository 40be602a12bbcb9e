// A constraint of a domain is checked against the rows that there are: against those of gcl tables by the coordinator,
// against those of a primary's own tables by that primary alone (ddl.no-user-code).
#pragma once

#include "extension/pg/ddl/base/pg.hpp"

namespace gcl {

// In a replay.  ERROR: a local table here has rows that the statement would have to check.
void refuse_checks_of_local_rows(const Node* statement);

}  // namespace gcl

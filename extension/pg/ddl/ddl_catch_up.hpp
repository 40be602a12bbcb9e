// Catching up from the cluster's DDL log.
#pragma once

#include "extension/pg/ddl/pg.hpp"

namespace gcl {

// Runs, in order, what other primaries committed in this database and this one has not applied; stops before a
// transaction that is still running.  An ERROR leaves all earlier ones applied.  REQUIRES: not in a transaction.
void apply_log();

// Names (char*) of the databases the log speaks of.
List* databases_in_log();

}  // namespace gcl

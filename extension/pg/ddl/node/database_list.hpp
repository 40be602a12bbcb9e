// Which databases this server has, for processes that are in none.
#pragma once

#include "extension/pg/ddl/base/pg.hpp"

namespace gcl {

// InvalidOid: there is none of that name.
Oid find_database(const char* database);
// Where a worker for what belongs to no database is connected to: the less it is in the way there, the better.  `home`
// has room for NAMEDATALEN.
void find_home(const char* avoided, char* home);

}  // namespace gcl

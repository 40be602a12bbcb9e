// default_table_access_method = gcl, whether or not the extension is in the database.
//
// A server refuses a table access method that is not in the database when a session sets it, or brings it along when it
// connects; what stands in postgresql.conf it takes on faith.  `gcl` is always taken on faith where gcl is preloaded:
// one setting, for a server, a role or a connection, does for databases with and without the extension.  In those
// without it, CREATE TABLE says what is missing (require_method in ddl/).
#pragma once

namespace gcl {

// From _PG_init, in the postmaster.
void accept_default_method();

}  // namespace gcl

// Statements on whole databases are local, and the DDL log knows a database by its name: what would give a name with a
// history to another database, or its pages to two, is refused.
#pragma once

#include "extension/pg/ddl/pg.hpp"

namespace gcl {

// Raises for DROP DATABASE and ALTER DATABASE ... RENAME of a database with the extension, and for CREATE DATABASE from
// one.  PostgreSQL lets none of them pass while somebody is connected, so nobody makes the extension meanwhile.
void check_database_statement(const Node* statement);

}  // namespace gcl

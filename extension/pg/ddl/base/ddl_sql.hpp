// Queries on the catalogs, with settings of their own: what they return is the same in every session and on every
// primary whose catalogs are the same.  Names in them have a schema (ddl.server-catalogs-only; tests/tidy looks).
#pragma once

#include <initializer_list>

#include "extension/pg/ddl/base/pg.hpp"

namespace gcl {

struct SqlArgument {
  Oid type;
  Datum value;
};

// Settings by which values are written as text, fixed until leave_fixed_settings(), or the end of the (sub)transaction.
int enter_fixed_settings();
void leave_fixed_settings(int nest);

// The first column of the only row as text, in the caller's memory context; null if it is null or there is no row.
char* catalog_text(const char* query, std::initializer_list<SqlArgument> arguments);
// REQUIRES: a superuser's rights.
void catalog_change(const char* query, std::initializer_list<SqlArgument> arguments);

SqlArgument oid_argument(Oid value);
SqlArgument text_argument(const char* value);
SqlArgument oids_argument(const List* oids);  // oid[]

}  // namespace gcl

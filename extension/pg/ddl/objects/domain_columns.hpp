// Which relations have a column that a domain's constraints are checked in.
#pragma once

#include "extension/pg/ddl/base/pg.hpp"

namespace gcl {

// OIDs, in order: relations of all kinds with a column of the domain, or of a domain over it, as the server finds them
// for ALTER DOMAIN.  Arrays, composite types and ranges of it are not followed: the server refuses a constraint if a
// table has a column of one, and reads no rows.  Takes no locks on relations.
List* relations_with_domain(Oid domain);

}  // namespace gcl

// Which relations have their rows in the pool.
#pragma once

#include "extension/pg/ddl/pg.hpp"

namespace gcl {

Oid gcl_access_method();  // InvalidOid: the extension is not in this database
bool is_shared_table(Oid relation);
bool is_shared_relation(Oid relation);  // a shared table, an index of one, or a shared sequence
List* shared_tables(Oid schema);        // OIDs; InvalidOid: of all schemas
List* shared_sequences(Oid schema);

}  // namespace gcl

// Which relations have their rows in the pool.
#pragma once

extern "C" {
#include "postgres.h"

#include "catalog/pg_class.h"
#include "nodes/pg_list.h"
}

namespace gcl {

inline constexpr const char* kExtensionName = "gcl";  // and the access method's

// False: there is no such relation (any more).
bool find_class(Oid relation, FormData_pg_class* form);
Oid gcl_access_method();  // InvalidOid: the extension is not in this database
bool is_shared_table(Oid relation);
bool is_shared_relation(Oid relation);  // a shared table, an index of one, or a shared sequence
List* shared_tables(Oid schema);        // OIDs; InvalidOid: of all schemas
List* shared_sequences(Oid schema);
// The relation itself, or the one that the default, constraint, trigger, policy or rule is a part of; InvalidOid: none.
Oid relation_of_part(Oid class_id, Oid object);

}  // namespace gcl

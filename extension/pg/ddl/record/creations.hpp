// What a statement makes that gets an OID: seen by object_access_hook when the row is in its catalog, on the
// coordinator and in the replay (ddl.oids-in-order).
#pragma once

#include "extension/pg/ddl/record/ddl_record.hpp"

namespace gcl {

// The row is not yet visible to the statement: it is looked up as it lies there.
DdlMade creation_of(Oid catalog, Oid object);

char* describe_made(const DdlMade& made);  // what kind of object it is, for errors

}  // namespace gcl

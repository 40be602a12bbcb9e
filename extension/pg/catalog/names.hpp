// What the names in a statement mean, before anything is locked (ddl.names-decide-unlocked).
#pragma once

extern "C" {
#include "postgres.h"

#include "nodes/parsenodes.h"
}

namespace gcl {

Oid find_relation(const RangeVar* name);    // InvalidOid: none; no lock
Oid find_where_made(const RangeVar* name);  // the same, of one that CREATE would make: there, not along the search path

// Whether a name has been looked up since begin_names() that leads to what has just gone.
void begin_names();
bool names_met_what_has_gone();

}  // namespace gcl

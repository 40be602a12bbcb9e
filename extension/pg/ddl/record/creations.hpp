// What a statement makes that gets an OID, in order: noted by object_access_hook while it runs, on the coordinator and
// in the replay.  Relations and types are given the coordinator's OIDs as they are made; PostgreSQL has variables for
// that (ddl_results.cpp).  The others are changed afterwards (object_oids.hpp).
#pragma once

#include "extension/pg/ddl/record/ddl_record.hpp"

namespace gcl {

struct Creations {
  List* relations_and_types[kMadeKinds];  // OIDs
  List* columns;                          // of int: of the relations, how many
  List* toasts;                           // DdlToast*: one for each TOAST relation
  List* objects;                          // DdlObject*: of other catalogs
  List* altered;                          // DdlObject*: of any catalog
  bool newest_is_toast;                   // of the relations
  bool newest_is_transient;               // made to take another's rows, for a while
};

// In the current memory context.  The row is not yet visible to the statement: it is looked up as it lies there.
void note_creation(Creations* made, Oid catalog, Oid object);
void note_alteration(Creations* made, Oid catalog, Oid object);

}  // namespace gcl

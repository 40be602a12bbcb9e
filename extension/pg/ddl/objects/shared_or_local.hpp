// Which objects are shared (ddl.shared-without-local-ties).  What was in the database before the extension counts as
// shared: a statement on it fails where it is missing.
#pragma once

#include "extension/pg/ddl/record/ddl_record.hpp"

namespace gcl {

// Whether one of the objects (DdlObject*) is, or depends on, something that this primary has for itself.
bool any_is_local(const List* objects);
bool is_local_object(Oid catalog, Oid object);

// A gcl table, an index of one, a view, composite type or sequence that is every primary's, or one of the server's own
// catalogs.
bool is_cluster_relation(Oid relation);

}  // namespace gcl

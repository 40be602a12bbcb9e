// Which statements are done on every primary, which stay here, and which are refused.
//
// ddl.local-statements: Done here alone: whatever touches only temporary objects, heap tables, what depends on them,
//     and what is not DDL.
// ddl.cluster-statements: Done on all primaries: the listed statements on gcl tables and their indexes, on objects that
//     all primaries have (object_scope.hpp), and on the extension itself.
// ddl.refused-statements: Refused (feature_not_supported): anything else that would change a shared object, or tie a
//     shared object to a local one.  What slips through the list is caught where it happens (ddl.captured-changes-only,
//     ddl.names-decide-unlocked).
#pragma once

#include "extension/pg/ddl/classify/ddl_plan.hpp"

namespace gcl {

// Asked first, by the node's kind alone: most statements, EXECUTE and BEGIN among them, must cost next to nothing.
bool may_concern_us(const Node* statement);

// May raise; takes no locks.
DdlPlan plan_ddl(Node* statement);

// Whether a temporary table would get the default access method gcl and must be heap instead.
bool wants_heap_instead(Node* statement);
void use_heap_instead(Node* statement);

}  // namespace gcl

// Which statements are done on every primary, which stay here, and which are refused.
//
// ddl.local-statements: Local are statements that touch only temporary objects, heap tables and what depends on them,
//     and statements that are no DDL.
// ddl.cluster-statements: Done on all primaries are the listed statements on gcl tables and their indexes, on objects
//     that all primaries have (object_scope.hpp), and on the extension itself.
// ddl.refused-statements: Refused (feature_not_supported) are all others that would change a shared object, or tie one
//     to a local object.  What the list has missed is caught where it happens (ddl.captured-changes-only,
//     ddl.names-decide-unlocked).
#pragma once

#include "extension/pg/ddl/classify/statement_kind.hpp"

namespace gcl {

// Asked first, by the node's kind alone: most statements, EXECUTE and BEGIN among them, must cost next to nothing.
bool may_concern_us(const Node* statement);

// May raise; takes no locks.
DdlPlan plan_ddl(Node* statement);

// Whether the user has the right to it, before anything is locked for it (ddl.no-lock-without-right, rights.hpp).
bool has_rights(const Node* statement);
AskedAgain asked_again(const Node* statement);

// Whether a temporary table would get the default access method gcl and must be heap instead.
bool wants_heap_instead(Node* statement);
void use_heap_instead(Node* statement);

}  // namespace gcl

// Whether the user has the right to a statement, before anything is locked for it (ddl.no-lock-without-right).
#pragma once

#include "extension/pg/ddl/base/pg.hpp"

namespace gcl {

// False: the server refuses the statement, before it locks a relation.  True also for names that stand for nothing, and
// for kinds of statements whose relations the server locks for every user.  Raises where the server would, with its
// words.
bool has_rights_for(const Node* statement);

}  // namespace gcl

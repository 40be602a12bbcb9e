// Expressions of partition keys in a replay (ddl.coordinator-ships-constants): the server folds what is constant in
// them, and refuses a key in which nothing else is left.  Here, where functions of users return null, more is constant
// than it was to the coordinator.
#pragma once

#include "extension/pg/ddl/base/pg.hpp"

namespace gcl {

// Changes the statement so that no key is constant.  SparedKey*: to be told when it has run.
List* spare_keys(Node* statement);
void tell_true_keys(const List* spared);

}  // namespace gcl

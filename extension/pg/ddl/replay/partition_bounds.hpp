// Bounds of partitions are constants when they leave their coordinator (ddl.coordinator-ships-constants).
#pragma once

#include "extension/pg/ddl/base/pg.hpp"

namespace gcl {

// char*: of the partitions that the statement has made or attached, as it would write them with constants.
List* bounds_of(Node* statement);

// Puts them in place of the statement's own.
void put_bounds(Node* statement, const List* bounds);

}  // namespace gcl

// Settings of the author that a record carries: those that change what a statement means, and those whose value it
// takes (SET ... FROM CURRENT).
#pragma once

#include "extension/pg/ddl/pg.hpp"

namespace gcl {

// DdlSetting*, as they are now.
List* settings_for(const Node* statement);

}  // namespace gcl

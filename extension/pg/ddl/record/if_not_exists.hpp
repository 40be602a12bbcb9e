// CREATE ... IF NOT EXISTS: what it means is decided by the coordinator.  If there was something already, nothing has
// happened and nobody hears of it; otherwise the others must not have one either.
#pragma once

#include "extension/pg/ddl/record/ddl_record.hpp"

namespace gcl {

// Null: the statement has no such clause.
bool* if_not_exists_of(Node* statement);
bool made_nothing(const DdlRecord* record);

}  // namespace gcl

// CREATE ... IF NOT EXISTS: what it means is decided by the coordinator.  If the object was there already, nothing has
// happened and the others are sent nothing; otherwise they must not have it either.
#pragma once

#include "extension/pg/ddl/record/ddl_record.hpp"

namespace gcl {

// Null: the statement has no such clause.
bool* if_not_exists_of(Node* statement);
bool made_nothing(const DdlRecord* record);

}  // namespace gcl

// Which relations are gcl tables, for code that has one open.
#pragma once

extern "C" {
#include "postgres.h"

#include "access/tableam.h"
#include "utils/rel.h"
}

namespace gcl {

// What the table access method's handler returns; set by _PG_init.
inline const TableAmRoutine* gcl_table_routine = nullptr;

inline bool is_gcl_table(Relation rel) { return rel->rd_tableam == gcl_table_routine; }

}  // namespace gcl

// Statements of a trigger on table_rewrite go to the others before the ALTER TABLE that it is half done with
// (ddl.event-triggers-apart).  So they may neither change nor need what that has changed; its rows are not yet what its
// columns say, either.
#pragma once

#include "extension/pg/ddl/record/ddl_record.hpp"

namespace gcl {

// ERROR if a statement may not, as far as is known before it runs, and when it has run.
void check_order_before(const List* targets);  // DdlTarget*
void check_order_after(const DdlRecord* record);

}  // namespace gcl

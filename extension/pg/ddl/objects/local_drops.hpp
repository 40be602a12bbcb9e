// What a replayed statement drops along (CASCADE) that is this primary's own: its coordinator cannot see it, and is
// told.
#pragma once

#include "extension/pg/ddl/base/pg.hpp"

namespace gcl {

void begin_local_drops();
// From the access hook of a replay, while the object is still there.
void note_local_drop(Oid class_id, Oid object, int sub_id);
// "table a, column b of table c and 7 more", of at most `bytes`; "": nothing.
char* local_drops_text(size_t bytes);

}  // namespace gcl

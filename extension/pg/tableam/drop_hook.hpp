// DROP: the pages of a gcl table, or of a gcl index, go when the transaction commits.
#pragma once

namespace gcl {
void install_drop_hook();  // from _PG_init
}

// Temporary tables are heap tables, also when default_table_access_method is gcl.
#pragma once

namespace gcl {
void install_temp_table_hook();  // from _PG_init
}

// The encoding and locale of a database, compared with the pool's (gcl.locale): a B-tree whose primaries sort
// differently would be corrupted silently.
#pragma once

namespace gcl {

// Raises 55000 when this process's database differs from gcl.locale; costs something only the first time.
void require_database_locale();
int pool_encoding();  // of gcl.locale

}  // namespace gcl

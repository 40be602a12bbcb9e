// The encoding and locale of a database, compared with the pool's (gcl.locale): a B-tree whose primaries sort
// differently would be corrupted silently.
#pragma once

namespace gcl {

// Whether this process's database has the encoding and locale of gcl.locale; costs something only the first time.
bool has_pools_locale() noexcept;
void require_database_locale();  // raises 55000 if not
int pool_encoding();             // of gcl.locale

}  // namespace gcl

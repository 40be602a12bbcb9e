#include "extension/pg/settings.hpp"

#include "coherence/base/ids.hpp"
#include "extension/pg/boundary/pg.hpp"

namespace gcl {

Settings settings;

void define_settings() {
  DefineCustomStringVariable("gcl.pool", "File of the memory pool that this primary joins (in tmpfs).",
                             "Empty: the server takes part in no pool.", &settings.pool, "", PGC_POSTMASTER, 0, nullptr,
                             nullptr, nullptr);
  DefineCustomStringVariable("gcl.pool_file", "File that keeps the pool while no primary of the cluster runs.", nullptr,
                             &settings.pool_file, "", PGC_POSTMASTER, 0, nullptr, nullptr, nullptr);
  DefineCustomStringVariable("gcl.database", "Database whose gcl tables are shared.", nullptr, &settings.database,
                             "postgres", PGC_POSTMASTER, 0, nullptr, nullptr, nullptr);
  DefineCustomStringVariable("gcl.locale", "Encoding and locale that all primaries of the pool share.",
                             "Written as ENCODING/LOCALE; checked when the pool is joined.", &settings.locale,
                             "UTF8/C.UTF-8", PGC_POSTMASTER, 0, nullptr, nullptr, nullptr);
  DefineCustomIntVariable("gcl.node_id", "Number of this primary in its pool.", nullptr, &settings.node_id, 0, 0,
                          coherence::kNodesMax - 1, PGC_POSTMASTER, 0, nullptr, nullptr, nullptr);
  DefineCustomIntVariable("gcl.cache_size", "Memory for this primary's copies of pool pages.", nullptr,
                          &settings.cache_size_kb, 128 * 1024, 1024, INT_MAX, PGC_POSTMASTER, GUC_UNIT_KB, nullptr,
                          nullptr, nullptr);
}

}  // namespace gcl

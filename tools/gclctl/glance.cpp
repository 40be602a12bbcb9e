#include "tools/gclctl/glance.hpp"

#include <fmt/format.h>

#include "tools/gclctl/connection.hpp"

namespace gclctl {
namespace {

constexpr const char* kServer = R"(
SELECT count(*) FILTER (WHERE a.backend_type = 'client backend'),
       (SELECT sum(xact_commit + xact_rollback)::bigint FROM pg_catalog.pg_stat_database),
       coalesce(extract(epoch FROM max(clock_timestamp() - a.xact_start))::int, 0),
       coalesce(
         (SELECT CASE WHEN restart_lsn IS NULL THEN '; WAL since the last save is lost (max_slot_wal_keep_size)'
                      ELSE format('; keeps %s MB of WAL', (pg_current_wal_lsn() - restart_lsn)::bigint / 1048576) END
            FROM pg_catalog.pg_replication_slots WHERE slot_name = 'gcl'),
         '; keeps no WAL for the pool: there is no replication slot gcl')
FROM pg_catalog.pg_stat_activity a WHERE a.pid <> pg_backend_pid())";
// {0} is the schema of the extension.
constexpr const char* kNode = R"(
SELECT cache_hits, cache_hits + cache_misses, frames * 8 / 1024, fenced FROM {0}.gcl_stat_node)";
constexpr const char* kPool = R"(
SELECT s.pool_pages - s.free_pool_pages, s.pool_pages, l.node, l.pid,
       extract(epoch FROM clock_timestamp() - l.since)::int
FROM {0}.gcl_stat_space s LEFT JOIN {0}.gcl_ddl_lock l ON true ORDER BY l.since)";
// In words, one line each.
constexpr const char* kToLookInto = R"(
SELECT format('DDL: primary %s has not answered for %s s (%s)', node, extract(epoch FROM awaited_for)::int, phase)
  FROM {0}.gcl_stat_ddl WHERE awaited_for IS NOT NULL
UNION ALL
SELECT format('primary %s says nothing since %s s', node, extract(epoch FROM clock_timestamp() - sampled_at)::int)
  FROM {0}.gcl_stat_cluster WHERE stale
UNION ALL
SELECT format('primary %s is %s behind in the DDL log (%s)%s', node, behind, state, ': ' || last_error)
  FROM {0}.gcl_stat_ddl_log WHERE state <> 'serving'
UNION ALL
SELECT format('the DDL log has %s of %s pages: primary %s has applied %s of %s entries%s', pages, pages_max, node, applied, entries,
              CASE WHEN present THEN '' ELSE ' and is away' END)
  FROM {0}.gcl_stat_ddl_log_kept WHERE holds AND pages > pages_max / 2
UNION ALL
SELECT format('rows deleted since stay: primary %s, process %s has a snapshot that is %s s old', node, pid,
              extract(epoch FROM clock_timestamp() - transaction_start)::int)
  FROM {0}.gcl_stat_horizon WHERE holds AND pid IS NOT NULL AND clock_timestamp() - transaction_start > interval '10 s'
UNION ALL
SELECT format('primary %s: %s of %s status words in use', node, status_words_used, status_words)
  FROM {0}.gcl_stat_cluster WHERE status_words_used > status_words / 2)";
// Asked alone: an extension that was not updated has no such view.
constexpr const char* kInDoubt = R"(
SELECT format('transactions in doubt until primary %s is back: %s (gcl_in_doubt)', node, count(*))
  FROM {0}.gcl_in_doubt GROUP BY node ORDER BY node)";

}  // namespace

Glance glance_at(const Cluster& c, int k, std::string* database) {
  Glance glance;
  auto connection = std::make_unique<Connection>(c.impatient_dsn(k));
  const auto server = connection->ask(kServer);
  if (server.empty()) {
    glance.primary = "accepts no session";
    return glance;
  }
  glance.primary = fmt::format("{} connections, {} transactions, the longest open for {} s{}", server[0][0],
                               server[0][1], server[0][2], server[0][3]);
  auto views = with_views(c, k, std::move(connection), database);
  if (views == nullptr) return glance;
  if (const auto node = views->ask_views(kNode); !node.empty()) {
    const double looks = std::stod(node[0][1]);
    glance.primary +=
        fmt::format("; cache {} MB, {:.1f} % hits", node[0][2], looks > 0 ? 100 * std::stod(node[0][0]) / looks : 0.0);
    glance.fenced = node[0][3] == "t";
  }
  if (const auto pool = views->ask_views(kPool); !pool.empty())
    glance.pool = fmt::format(
        "{} of {} pages in use; DDL lock: {}", pool[0][0], pool[0][1],
        pool[0][3].empty() ? "free"
                           : fmt::format("primary {}, process {}, for {} s{}", pool[0][2], pool[0][3], pool[0][4],
                                         pool.size() > 1 ? fmt::format(", and {} more", pool.size() - 1) : ""));
  if (glance.pool)
    for (const char* question : {kToLookInto, kInDoubt})
      for (const Row& line : views->ask_views(question)) *glance.pool += "\n           " + line[0];
  return glance;
}

}  // namespace gclctl

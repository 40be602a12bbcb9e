#include "tools/gclctl/glance.hpp"

#include <fmt/format.h>
#include <libpq-fe.h>
#include <poll.h>

#include <chrono>
#include <memory>
#include <vector>

namespace gclctl {
namespace {

constexpr auto kAnswerMax = std::chrono::milliseconds(4000);

constexpr const char* kServer = R"(
SELECT count(*) FILTER (WHERE a.backend_type = 'client backend'),
       (SELECT sum(xact_commit + xact_rollback)::bigint FROM pg_stat_database),
       coalesce(extract(epoch FROM max(clock_timestamp() - a.xact_start))::int, 0)
FROM pg_stat_activity a WHERE a.pid <> pg_backend_pid())";
constexpr const char* kNode = R"(
SELECT cache_hits, cache_hits + cache_misses, frames * 8 / 1024, fenced FROM gcl_stat_node)";
constexpr const char* kPool = R"(
SELECT s.pool_pages - s.free_pool_pages, s.pool_pages, l.node, l.pid,
       extract(epoch FROM clock_timestamp() - l.since)::int
FROM gcl_stat_space s LEFT JOIN gcl_ddl_lock l ON true)";
// In words, one line each.
constexpr const char* kNews = R"(
SELECT format('DDL: primary %s has not answered for %s s (%s)', node, extract(epoch FROM awaited_for)::int, phase)
  FROM gcl_stat_ddl WHERE awaited_for IS NOT NULL
UNION ALL
SELECT format('primary %s says nothing since %s s', node, extract(epoch FROM clock_timestamp() - sampled_at)::int)
  FROM gcl_stat_cluster WHERE stale
UNION ALL
SELECT format('primary %s is %s behind in the DDL log (%s)%s', node, behind, state, ': ' || last_error)
  FROM gcl_stat_ddl_log WHERE state <> 'serving'
UNION ALL
SELECT format('rows deleted since stay: primary %s, process %s has a snapshot that is %s s old', node, pid,
              extract(epoch FROM clock_timestamp() - transaction_start)::int)
  FROM gcl_stat_horizon WHERE holds AND pid IS NOT NULL AND clock_timestamp() - transaction_start > interval '10 s'
UNION ALL
SELECT format('primary %s: %s of %s status words in use', node, status_words_used, status_words)
  FROM gcl_stat_cluster WHERE status_words_used > status_words / 2)";
constexpr const char* kOtherDatabases = R"(
SELECT datname FROM pg_database WHERE datallowconn AND NOT datistemplate AND datname <> current_database() ORDER BY oid)";
constexpr const char* kHasViews = "SELECT 1 FROM pg_extension WHERE extname = 'gcl'";

using Row = std::vector<std::string>;

class Connection {
 public:
  explicit Connection(const std::string& dsn)
      : conn_(PQconnectdb((dsn + " options='-c statement_timeout=3000'").c_str()), PQfinish) {}
  bool good() const { return PQstatus(conn_.get()) == CONNECTION_OK; }

  // The rows; none if there is no answer in time, or an error.
  std::vector<Row> ask(const char* sql) {
    std::vector<Row> rows;
    if (!good() || PQsendQuery(conn_.get(), sql) != 1) return rows;
    const auto deadline = std::chrono::steady_clock::now() + kAnswerMax;
    while (PQisBusy(conn_.get())) {
      const auto left =
          std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
      pollfd ready{PQsocket(conn_.get()), POLLIN, 0};
      if (left.count() <= 0 || poll(&ready, 1, int(left.count())) < 0 || PQconsumeInput(conn_.get()) != 1) return rows;
    }
    while (PGresult* result = PQgetResult(conn_.get())) {
      for (int i = 0; PQresultStatus(result) == PGRES_TUPLES_OK && i < PQntuples(result); i++) {
        rows.emplace_back();
        for (int j = 0; j < PQnfields(result); j++) rows.back().emplace_back(PQgetvalue(result, i, j));
      }
      PQclear(result);
    }
    return rows;
  }

 private:
  std::unique_ptr<PGconn, void (*)(PGconn*)> conn_;
};

// A connection to a database that has the views: the extension may be in any.
std::unique_ptr<Connection> with_views(const Cluster& c, int k, std::unique_ptr<Connection> first) {
  if (!first->ask(kHasViews).empty()) return first;
  for (const Row& database : first->ask(kOtherDatabases)) {
    std::string quoted;
    for (char letter : database[0])
      quoted += letter == '\'' || letter == '\\' ? std::string("\\") + letter : std::string(1, letter);
    auto other = std::make_unique<Connection>(c.impatient_dsn(k) + " dbname='" + quoted + "'");
    if (!other->ask(kHasViews).empty()) return other;
  }
  return nullptr;
}

}  // namespace

Glance look_at(const Cluster& c, int k) {
  Glance glance;
  auto connection = std::make_unique<Connection>(c.impatient_dsn(k));
  const auto server = connection->ask(kServer);
  if (server.empty()) {
    glance.primary = "accepts no session";
    return glance;
  }
  glance.primary = fmt::format("{} connections, {} transactions, the longest open for {} s", server[0][0], server[0][1],
                               server[0][2]);
  auto views = with_views(c, k, std::move(connection));
  if (views == nullptr) return glance;
  if (const auto node = views->ask(kNode); !node.empty()) {
    const double looks = std::stod(node[0][1]);
    glance.primary +=
        fmt::format("; cache {} MB, {:.1f} % hits", node[0][2], looks > 0 ? 100 * std::stod(node[0][0]) / looks : 0.0);
    glance.fenced = node[0][3] == "t";
  }
  if (const auto pool = views->ask(kPool); !pool.empty())
    glance.pool = fmt::format(
        "{} of {} pages in use; DDL lock: {}", pool[0][0], pool[0][1],
        pool[0][3].empty() ? "free"
                           : fmt::format("primary {}, process {}, for {} s", pool[0][2], pool[0][3], pool[0][4]));
  if (glance.pool)
    for (const Row& line : views->ask(kNews)) *glance.pool += "\n           " + line[0];
  return glance;
}

}  // namespace gclctl

#include "tools/gclctl/glance.hpp"

#include <fmt/format.h>
#include <libpq-fe.h>
#include <poll.h>

#include <chrono>
#include <memory>
#include <vector>

namespace gclctl {
namespace {

constexpr const char* kFirstDatabase = "postgres";  // of Cluster::dsn()
constexpr auto kAnswerMax = std::chrono::milliseconds(4000);

// A database's owner decides what its sessions find by an unqualified name (ALTER DATABASE ... SET search_path), and
// may put anything there.  We come as a superuser: nothing of ours is looked for outside pg_catalog and the extension's
// schema.
constexpr const char* kOptions =
    " options='-c search_path= -c role=none -c default_transaction_read_only=off -c statement_timeout=3000'";

constexpr const char* kServer = R"(
SELECT count(*) FILTER (WHERE a.backend_type = 'client backend'),
       (SELECT sum(xact_commit + xact_rollback)::bigint FROM pg_catalog.pg_stat_database),
       coalesce(extract(epoch FROM max(clock_timestamp() - a.xact_start))::int, 0)
FROM pg_catalog.pg_stat_activity a WHERE a.pid <> pg_backend_pid())";
constexpr const char* kOtherDatabases = R"(
SELECT datname FROM pg_catalog.pg_database
 WHERE datallowconn AND NOT datistemplate AND datname <> current_database() ORDER BY oid)";

// Where the extension's views are.  The lock on the schema's row keeps its owner from renaming it, and from putting
// another one in its place, until our transaction ends; the views themselves are the extension's and stay.
constexpr const char* kSchema = R"(
SELECT quote_ident(n.nspname) FROM pg_catalog.pg_extension e JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace
 WHERE e.extname = 'gcl' FOR SHARE OF n)";
// {0} is that schema.
constexpr const char* kNode = R"(
SELECT cache_hits, cache_hits + cache_misses, frames * 8 / 1024, fenced FROM {0}.gcl_stat_node)";
constexpr const char* kPool = R"(
SELECT s.pool_pages - s.free_pool_pages, s.pool_pages, l.node, l.pid,
       extract(epoch FROM clock_timestamp() - l.since)::int
FROM {0}.gcl_stat_space s LEFT JOIN {0}.gcl_ddl_lock l ON true ORDER BY l.since)";
// In words, one line each.
constexpr const char* kNews = R"(
SELECT format('DDL: primary %s has not answered for %s s (%s)', node, extract(epoch FROM awaited_for)::int, phase)
  FROM {0}.gcl_stat_ddl WHERE awaited_for IS NOT NULL
UNION ALL
SELECT format('primary %s says nothing since %s s', node, extract(epoch FROM clock_timestamp() - sampled_at)::int)
  FROM {0}.gcl_stat_cluster WHERE stale
UNION ALL
SELECT format('primary %s is %s behind in the DDL log (%s)%s', node, behind, state, ': ' || last_error)
  FROM {0}.gcl_stat_ddl_log WHERE state <> 'serving'
UNION ALL
SELECT format('rows deleted since stay: primary %s, process %s has a snapshot that is %s s old', node, pid,
              extract(epoch FROM clock_timestamp() - transaction_start)::int)
  FROM {0}.gcl_stat_horizon WHERE holds AND pid IS NOT NULL AND clock_timestamp() - transaction_start > interval '10 s'
UNION ALL
SELECT format('primary %s: %s of %s status words in use', node, status_words_used, status_words)
  FROM {0}.gcl_stat_cluster WHERE status_words_used > status_words / 2)";

using Row = std::vector<std::string>;

class Connection {
 public:
  explicit Connection(const std::string& dsn) : conn_(PQconnectdb((dsn + kOptions).c_str()), PQfinish) {}
  bool good() const { return PQstatus(conn_.get()) == CONNECTION_OK; }

  bool has_views() { return !in_transaction(nullptr).empty(); }
  // Of the extension's views; {0} in `sql` is their schema.
  std::vector<Row> ask_views(const char* sql) { return in_transaction(sql); }

  // The rows; none if there is no answer in time, or an error.
  std::vector<Row> ask(const std::string& sql) {
    std::vector<Row> rows;
    if (!good() || PQsendQuery(conn_.get(), sql.c_str()) != 1) return rows;
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
  // The rows of `sql`; without one, the schema.
  std::vector<Row> in_transaction(const char* sql) {
    (void)ask("BEGIN");
    std::vector<Row> rows = ask(kSchema);
    if (!rows.empty() && sql != nullptr) rows = ask(fmt::format(fmt::runtime(sql), rows[0][0]));
    (void)ask("COMMIT");
    return rows;
  }

  std::unique_ptr<PGconn, void (*)(PGconn*)> conn_;
};

std::unique_ptr<Connection> connect(const Cluster& c, int k, const std::string& database) {
  return std::make_unique<Connection>(c.impatient_dsn(k) + " dbname=" + conninfo_value(database));
}

// A connection to a database that has the views: the extension may be in any.  *database: where they were last found.
std::unique_ptr<Connection> with_views(const Cluster& c, int k, std::unique_ptr<Connection> first,
                                       std::string* database) {
  if (database->empty() && first->has_views()) *database = kFirstDatabase;
  if (*database == kFirstDatabase) return first;
  if (!database->empty())
    if (auto known = connect(c, k, *database); known->has_views()) return known;
  for (const Row& other : first->ask(kOtherDatabases)) {
    auto connection = connect(c, k, other[0]);
    if (!connection->has_views()) continue;
    *database = other[0];
    return connection;
  }
  return nullptr;
}

}  // namespace

Glance look_at(const Cluster& c, int k, std::string* database) {
  Glance glance;
  auto connection = std::make_unique<Connection>(c.impatient_dsn(k));
  const auto server = connection->ask(kServer);
  if (server.empty()) {
    glance.primary = "accepts no session";
    return glance;
  }
  glance.primary = fmt::format("{} connections, {} transactions, the longest open for {} s", server[0][0], server[0][1],
                               server[0][2]);
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
    for (const Row& line : views->ask_views(kNews)) *glance.pool += "\n           " + line[0];
  return glance;
}

}  // namespace gclctl

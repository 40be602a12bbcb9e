#include "tools/gclctl/connection.hpp"

#include <fmt/format.h>
#include <poll.h>

#include "tools/gclctl/failure.hpp"

namespace gclctl {
namespace {

constexpr const char* kFirstDatabase = "postgres";  // of Cluster::dsn()
constexpr auto kAnswerMax = std::chrono::milliseconds(4000);

// A database's owner decides what its sessions find by an unqualified name (ALTER DATABASE ... SET search_path), and
// may put anything there.  We come as a superuser: nothing of ours is looked for outside pg_catalog and the extension's
// schema.
constexpr const char* kOptions =
    " options='-c search_path= -c role=none -c default_transaction_read_only=off -c statement_timeout=3000'";

constexpr const char* kOtherDatabases = R"(
SELECT datname FROM pg_catalog.pg_database
 WHERE datallowconn AND NOT datistemplate AND datname <> current_database() ORDER BY oid)";

// Where the extension's views are.  The lock on the schema's row keeps its owner from renaming it, and from putting
// another one in its place, until our transaction ends; the views themselves are the extension's and stay.
constexpr const char* kSchema = R"(
SELECT quote_ident(n.nspname) FROM pg_catalog.pg_extension e JOIN pg_catalog.pg_namespace n ON n.oid = e.extnamespace
 WHERE e.extname = 'gcl' FOR SHARE OF n)";

}  // namespace

Connection::Connection(const std::string& dsn) : conn_(PQconnectdb((dsn + kOptions).c_str()), PQfinish) {}

// False: no answer in time.
bool Connection::send(const std::string& sql, std::chrono::milliseconds patience) {
  if (!good() || PQsendQuery(conn_.get(), sql.c_str()) != 1) return false;
  const auto deadline = std::chrono::steady_clock::now() + patience;
  while (PQisBusy(conn_.get())) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd ready{PQsocket(conn_.get()), POLLIN, 0};
    if (left.count() <= 0 || poll(&ready, 1, int(left.count())) < 0 || PQconsumeInput(conn_.get()) != 1) return false;
  }
  return true;
}

std::vector<Row> Connection::read(std::string* problem) {
  std::vector<Row> rows;
  while (PGresult* result = PQgetResult(conn_.get())) {
    const ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) *problem = PQresultErrorMessage(result);
    for (int i = 0; status == PGRES_TUPLES_OK && i < PQntuples(result); i++) {
      rows.emplace_back();
      for (int j = 0; j < PQnfields(result); j++) rows.back().emplace_back(PQgetvalue(result, i, j));
    }
    PQclear(result);
  }
  return rows;
}

std::vector<Row> Connection::ask(const std::string& sql) {
  std::string ignored;
  return send(sql, kAnswerMax) ? read(&ignored) : std::vector<Row>{};
}

std::vector<Row> Connection::require(const std::string& sql, std::chrono::milliseconds patience) {
  std::string problem;
  if (!send(sql, patience)) fail("no answer: {}", PQerrorMessage(conn_.get()));
  std::vector<Row> rows = read(&problem);
  if (!problem.empty()) fail("{}", problem);
  return rows;
}

std::string Connection::begin() {
  (void)ask("BEGIN");
  const std::vector<Row> schema = ask(kSchema);
  return schema.empty() ? "" : schema[0][0];
}

std::vector<Row> Connection::in_transaction(const char* sql) {
  const std::string schema = begin();
  std::vector<Row> rows;
  if (!schema.empty()) rows = sql == nullptr ? std::vector<Row>{{schema}} : ask(fmt::format(fmt::runtime(sql), schema));
  (void)ask("COMMIT");
  return rows;
}

std::unique_ptr<Connection> connect(const Cluster& c, int k, const std::string& database) {
  return std::make_unique<Connection>(c.impatient_dsn(k) + " dbname=" + conninfo_value(database));
}

int first_running(const Cluster& c, int but) {
  for (int k : c.chosen(0))
    if (k != but && c.postmaster(k) != 0 && connect(c, k)->good()) return k;
  return 0;
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

}  // namespace gclctl

// gclctl's own connections (gclctl.runs-nothing-foreign): a superuser's, in databases of others, where nothing of
// theirs is run.
#pragma once

#include <libpq-fe.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "tools/gclctl/cluster.hpp"

namespace gclctl {

// How long what changes the cluster waits: for DDL that is under way; for everything else.
constexpr std::chrono::seconds kDdlMax{60}, kCommitMax{30};

using Row = std::vector<std::string>;

class Connection {
 public:
  explicit Connection(const std::string& dsn);
  bool good() const { return PQstatus(conn_.get()) == CONNECTION_OK; }

  bool has_views() { return !in_transaction(nullptr).empty(); }
  // Of the extension's views; {0} in `sql` is their schema.
  std::vector<Row> ask_views(const char* sql) { return in_transaction(sql); }
  // The rows; none if there is no answer in time, or an error.
  std::vector<Row> ask(const std::string& sql);
  // Begins a transaction, in which the schema of the extension keeps its name, which is returned; "": it is not here.
  std::string begin();
  // The same, but fails with the server's words.
  std::vector<Row> require(const std::string& sql, std::chrono::milliseconds patience);

 private:
  // The rows of `sql`; without one, the schema.
  std::vector<Row> in_transaction(const char* sql);
  bool send(const std::string& sql, std::chrono::milliseconds patience);
  std::vector<Row> read(std::string* problem);

  std::unique_ptr<PGconn, void (*)(PGconn*)> conn_;
};

std::unique_ptr<Connection> connect(const Cluster& c, int k, const std::string& database = "postgres");

// A primary that accepts sessions, another than `but`; 0: there is none.
int first_running(const Cluster& c, int but);

// A connection to a database that has the views, or null: the extension may be in any.  *database: where they were last
// found.
std::unique_ptr<Connection> with_views(const Cluster& c, int k, std::unique_ptr<Connection> first,
                                       std::string* database);

}  // namespace gclctl

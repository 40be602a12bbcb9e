// gclctl status, dsn, psql: looking at a cluster.
#include <libpq-fe.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <set>

#include "tools/gclctl/checkpoint.hpp"
#include "tools/gclctl/cluster.hpp"
#include "tools/gclctl/deaths.hpp"
#include "tools/gclctl/failure.hpp"
#include "tools/gclctl/glance.hpp"
#include "tools/gclctl/hosts.hpp"
#include "tools/gclctl/memory_node.hpp"
#include "tools/gclctl/pool.hpp"
#include "tools/gclctl/prefix.hpp"
#include "tools/gclctl/process.hpp"
#include "tools/gclctl/upgrade_note.hpp"
#include "tools/gclctl/verbs.hpp"

namespace gclctl {
namespace {

const char* describe(PoolState::Kind kind) {
  switch (kind) {
    case PoolState::Kind::kClean:
      return "closed cleanly";
    case PoolState::Kind::kInUse:
      return "in use";
    case PoolState::Kind::kOrphaned:
      return "in memory; its primaries have died, and the next start repairs it";
    case PoolState::Kind::kUnclean:
      return "FENCED; the next start makes it again when no primary runs";
    case PoolState::Kind::kLost:
      return "LOST with the memory, and made again by the next start";
    case PoolState::Kind::kDamaged:
      return "DAMAGED";
    case PoolState::Kind::kForeign:
      return "NOT FOR THESE SERVERS";
    case PoolState::Kind::kUnsaved:
      return "NOT SAVED";
    case PoolState::Kind::kAbsent:
      break;
  }
  return "gone";
}

int show(const Cluster& c) {
  const HostsInWords hosts = c.on_hosts() ? hosts_in_words(c) : HostsInWords{};
  int up = 0;
  std::optional<std::string> pool_use;
  std::string database;  // where the views are
  const std::map<int, std::string> deaths = deaths_in(c);
  std::set<fs::path> prefixes;
  for (int k : c.chosen(0)) prefixes.insert(c.prefix(k));
  for (int k : c.chosen(0)) {
    int pid = c.postmaster(k);
    bool answers = pid != 0 && PQping(c.impatient_dsn(k).c_str()) == PQPING_OK;
    up += answers;
    fmt::print("primary {}  port {}  {}\n", k, c.port_of(k),
               answers    ? fmt::format("up (process {})", pid)
               : pid != 0 ? fmt::format("process {} does not answer", pid)
                          : "down");
    if (prefixes.size() > 1) fmt::print("           {}\n", software_in(c.prefix(k)));
    if (const std::string words = upgrade_in_words(c, k); !words.empty()) fmt::print("           {}\n", words);
    if (const auto death = deaths.find(k); death != deaths.end()) fmt::print("           {}\n", death->second);
    if (!answers) continue;
    const Glance glance = glance_at(c, k, &database);
    fmt::print("           {}{}\n", glance.fenced ? "FENCED; " : "", glance.primary);
    if (!pool_use) pool_use = glance.pool;
  }
  for (int k : c.removed)
    fmt::print("primary {}  removed{}\n", k,
               fs::exists(c.data(k)) ? "; its data directory is kept: " + c.data(k).string() : "");
  if (c.on_hosts()) {
    fmt::print("{}", hosts.text);
    if (pool_use) fmt::print("           {}\n", *pool_use);
    return up == int(c.chosen(0).size()) && hosts.all_serve ? 0 : 1;
  }
  const MemoryNodesInWords memory = memory_nodes_in_words(c);
  fmt::print("{}", memory.text);
  PoolState pool = inspect_pool(c);
  const PoolExtent extent = extent_of_pool(c.pool(), c.saved_pool());
  fmt::print("pool       {}{}{}{}\n", extent.files.empty() ? "" : fmt::format("{} MB  ", megabytes(extent.bytes)),
             describe(pool.kind), pool.text.empty() ? "" : ": ", pool.text);
  if (pool_use) fmt::print("           {}\n", *pool_use);
  if (const std::string since = checkpoint_in_words(c.saved_pool()); !since.empty())
    fmt::print("           {}\n", since);
  for (const fs::path& file : extent.files) {
    std::error_code error;
    const uint64_t bytes = fs::file_size(file, error);
    fmt::print("           {}  {}\n", error ? "no file" : fmt::format("{} MB", megabytes(bytes)), file.string());
  }
  return up == int(c.chosen(0).size()) && pool.kind == PoolState::Kind::kInUse && memory.all_serve ? 0 : 1;
}

}  // namespace

int status(const std::string& dir) {
  Cluster c = Cluster::load(dir);
  return run_as(c.account, [&] { return show(c); });
}

int dsn(const std::string& dir, int node) {
  Cluster c = Cluster::load(dir);
  fmt::print("{}\n", c.dsn(c.chosen(node).front()));
  return 0;
}

int psql(const std::string& dir, int node, const std::vector<std::string>& arguments) {
  Cluster c = Cluster::load(dir);
  check_may_act_for(c.account);  // the socket's directory is closed to others
  std::string program = (installation().bindir / "psql").string();
  // As defaults, so that another database or user may be named as psql's manual says.
  for (const char* other : {"PGSERVICE", "PGHOSTADDR"}) unsetenv(other);
  setenv("PGHOST", c.socket_dir.c_str(), 1);
  setenv("PGPORT", std::to_string(c.port_of(c.chosen(node).front())).c_str(), 1);
  setenv("PGUSER", "postgres", 1);
  setenv("PGDATABASE", "postgres", 1);
  std::vector<char*> argv = {program.data()};
  for (const std::string& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  execv(program.c_str(), argv.data());
  fail("cannot run {}: {}", program, strerror(errno));
}

}  // namespace gclctl

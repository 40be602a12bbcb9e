// gclctl add-primary: one primary more, from the data directory of one that runs.
#include <unistd.h>

#include <optional>
#include <utility>
#include <vector>

#include "extension/oid_range.hpp"
#include "tools/gclctl/checks.hpp"
#include "tools/gclctl/cluster.hpp"
#include "tools/gclctl/configuration.hpp"
#include "tools/gclctl/connection.hpp"
#include "tools/gclctl/directory.hpp"
#include "tools/gclctl/failure.hpp"
#include "tools/gclctl/primaries_lock.hpp"
#include "tools/gclctl/process.hpp"
#include "tools/gclctl/removed_logs.hpp"
#include "tools/gclctl/start.hpp"
#include "tools/gclctl/verbs.hpp"

namespace gclctl {
namespace {

int running_primary(const Cluster& c) {
  if (const int k = first_running(c, 0); k != 0) return k;
  fail("no primary runs: the new one is made from the data directory of one that does; gclctl start {}",
       c.dir.string());
}

// Under the whole cluster's DDL lock: what is copied has all DDL up to here, and nothing newer.
void copy_data(const Cluster& c, int from, int k, const fs::path& data, bool* copied) {
  std::string database;
  auto views = with_views(c, from, connect(c, from), &database);
  if (views == nullptr) fail("no database of primary {} has the extension: CREATE EXTENSION gcl in one first", from);
  const std::string schema = views->begin();
  if (schema.empty()) fail("the extension is gone from database {}", database);
  views->require(fmt::format("SET LOCAL statement_timeout = '{}s'", kDdlMax.count()), kCommitMax);
  views->require(fmt::format("SELECT {}.gcl_prepare_copy({})", schema, k), kDdlMax + kCommitMax);
  output_of({(c.bindir(from) / "pg_basebackup").string(), "-D", data.string(), "-c", "fast", "-X", "stream", "-d",
             c.dsn(from)});
  *copied = true;  // perhaps
  views->require("COMMIT", kCommitMax);
}

// Gives the copy its own settings (gclctl.own-settings-count), brings it to the end of its log, and lets it give its
// own OIDs.
void finish_data(const Cluster& c, int k, const fs::path& data) {
  rewrite_configuration(data, {{"gcl.node_id", std::to_string(k)},
                               {"port", std::to_string(c.port_of(k))},
                               {"cluster_name", fmt::format("'gcl{}'", k)}});
  const std::string bin = c.bindir(k).string();
  output_of({bin + "/postgres", "--single", "-D", data.string(), "-c", "shared_preload_libraries=gcl", "-c",
             "gcl.pool=", "template1"});
  output_of({bin + "/pg_resetwal", "-o", std::to_string(gcl::oids_of_node(k).first), "-D", data.string()});
}

void forget(const Cluster& c, int from, int k) {
  std::string database;
  auto views = with_views(c, from, connect(c, from), &database);
  if (views) (void)views->ask_views(fmt::format("SELECT {{0}}.gcl_forget_primary({})", k).c_str());
}

// Where this process makes the copy.  Where one was killed, its pg_basebackup may go on for a while: what that writes
// is not ours.
fs::path new_part(const fs::path& data) {
  const std::string prefix = data.filename().string() + ".part.";
  std::vector<fs::path> left;
  for (const auto& entry : fs::directory_iterator(data.parent_path()))
    if (entry.path().filename().string().starts_with(prefix)) left.push_back(entry.path());
  std::error_code ignored;
  for (const fs::path& one : left) fs::remove_all(one, ignored);
  return data.parent_path() / (prefix + std::to_string(getpid()));
}

// Gives the copy the name of the primary's data directory (gclctl.primary-from-backup).
class Naming {
 public:
  Naming(const Cluster& c, int k, fs::path part) : c_(c), k_(k), part_(std::move(part)) {}

  void name() {
    missing_ = note_missing_log(c_, k_);  // before another log is in the place of that one
    if (missing_)
      fmt::print(stderr,
                 "gclctl: the log of the former primary {} is not here: until all primaries have been stopped once, a "
                 "loss of memory cannot be mended, unless its pg_wal is put into {}\n",
                 k_, missing_->string());
    fs::rename(part_, c_.data(k_));
    named_ = true;
    sync_path(c_.data(k_).parent_path());
  }

  void undo() {
    std::error_code ignored;
    fs::remove_all(named_ ? c_.data(k_) : part_, ignored);
    if (missing_) fs::remove_all(*missing_, ignored);
  }

 private:
  const Cluster& c_;
  const int k_;
  const fs::path part_;
  std::optional<fs::path> missing_;
  bool named_ = false;
};

int add(Cluster c, int node) {
  c.check_number(node);
  const int k = node == 0 ? c.primaries + 1 : node;
  if (k > kPrimariesMax) fail("a cluster has at most {} primaries", kPrimariesMax);
  check_port_free(c, k);
  check_memory(c, 1, 0);
  const int from = running_primary(c);
  if (fs::exists(c.data(k))) fail("{} is there: put it out of the way first", c.data(k).string());
  fmt::print("primary {}: data directory, from that of primary {}\n", k, from);
  fflush(stdout);
  fs::create_directories(c.data(k).parent_path());
  const auto not_yet = lock_start(c, k);  // it may be in cluster.conf
  if (c.prefix(k) != c.prefix(from)) c.use_prefix(k, c.prefix(from));
  const fs::path part = new_part(c.data(k));
  Naming naming(c, k, part);
  bool copied = false;
  try {
    copy_data(c, from, k, part, &copied);
    finish_data(c, k, part);
    sync_file_system(c.dir);
    naming.name();
    c.primaries = std::max(c.primaries, k);
    c.removed.erase(k);
    c.save();
  } catch (...) {
    naming.undo();
    if (copied) forget(c, from, k);
    throw;
  }
  fmt::print("the cluster has {} primaries; start the new one with: gclctl start {} --node {}\n", c.chosen(0).size(),
             c.dir.string(), k);
  return 0;
}

}  // namespace

int add_primary(const std::string& dir, int node) {
  const Cluster c = Cluster::load(dir);
  return run_as(c.account, [&] {
    const PrimariesLock alone(c.dir);
    return add(Cluster::load(c.dir), node);
  });
}

}  // namespace gclctl

// gclctl remove-primary: one primary less, for good (gclctl.removed-for-good).
#include <signal.h>

#include "tools/gclctl/cluster.hpp"
#include "tools/gclctl/connection.hpp"
#include "tools/gclctl/failure.hpp"
#include "tools/gclctl/primaries_lock.hpp"
#include "tools/gclctl/process.hpp"
#include "tools/gclctl/removed_logs.hpp"
#include "tools/gclctl/shared_memory.hpp"
#include "tools/gclctl/stop.hpp"
#include "tools/gclctl/upgrade_note.hpp"
#include "tools/gclctl/verbs.hpp"

namespace gclctl {
namespace {

// The others forget it: the DDL log does not wait for it, and its data directory is refused.  They say why not, if it
// has died and its death is not dealt with.
class Forgetting {
 public:
  Forgetting(const Cluster& c, int by) {
    views_ = with_views(c, by, connect(c, by), &database_);
    if (views_ == nullptr) fail("no database of primary {} has the extension: CREATE EXTENSION gcl in one first", by);
  }
  void forget(int k) {
    const std::string schema = views_->begin();
    if (schema.empty()) fail("the extension is gone from database {}", database_);
    views_->require(fmt::format("SET LOCAL statement_timeout = '{}s'", kDdlMax.count()), kCommitMax);
    views_->require(fmt::format("SELECT {}.gcl_forget_primary({})", schema, k), kDdlMax + kCommitMax);
    views_->require("COMMIT", kCommitMax);
  }

 private:
  std::string database_;
  std::unique_ptr<Connection> views_;
};

// REQUIRES: it is noted as removed.
void delete_data(const Cluster& c, int k) {
  if (const int pid = c.postmaster(k); pid != 0)
    fail("primary {} was removed, and a server runs on its data directory (process {}): stop it first", k, pid);
  remove_shared_memory(c, k);
  if (keep_log(c, k, KeptLog::kMoved))
    fmt::print("its log is kept until the pool is saved, by the next stop of all primaries\n");
  c.remove_moved_data(k);
  fs::remove_all(c.data(k).parent_path());
}

// May be begun again after it has failed anywhere.
int remove(Cluster c, int node, Data data) {
  if (data == Data::kDelete && c.removed.contains(node) && fs::exists(c.data(node).parent_path())) {
    delete_data(c, node);
    fmt::print("what was left of primary {} is deleted\n", node);
    return 0;
  }
  const int k = c.chosen(node).front();
  const int by = first_running(c, k);
  if (by == 0) fail("no other primary runs, which is to go on without primary {}; gclctl start {}", k, c.dir.string());
  Forgetting others(c, by);  // before anything is stopped
  const bool ran = c.postmaster(k) != 0;
  drop_upgrade_note(c, k);
  signal_and_wait(c, {k}, SIGINT);
  try {
    others.forget(k);
  } catch (const Failure& e) {
    fail("primary {} {}, and is still one of the cluster: {}", k, ran ? "is stopped" : "does not run", e.what());
  }
  const bool kept = data == Data::kKeep && keep_log(c, k, KeptLog::kCopied);
  c.removed.insert(k);
  c.save();
  fmt::print("primary {} is removed: the cluster has {}\n", k, c.chosen(0).size());
  if (data == Data::kDelete) {
    delete_data(c, k);
  } else {
    fmt::print(
        "its data directory is kept, with its ordinary tables: {}. A server that is started there has no gcl tables "
        "any more\n",
        c.data(k).string());
    if (kept) fmt::print("a copy of its log is kept until the pool is saved, by the next stop of all primaries\n");
  }
  return 0;
}

}  // namespace

int remove_primary(const std::string& dir, int node, Data data) {
  const Cluster c = Cluster::load(dir);
  return run_as(c.account, [&] {
    const PrimariesLock alone(c.dir);
    return remove(Cluster::load(c.dir), node, data);
  });
}

}  // namespace gclctl

// gclctl stop: fast shutdown of the primaries together; the last one that leaves the pool saves it.  With --immediate
// they do not leave it: to the others that is a death.
#include <signal.h>
#include <sys/wait.h>

#include <chrono>
#include <thread>

#include "tools/gclctl/cluster.hpp"
#include "tools/gclctl/failure.hpp"
#include "tools/gclctl/memory_node.hpp"
#include "tools/gclctl/pool.hpp"
#include "tools/gclctl/process.hpp"
#include "tools/gclctl/removed_logs.hpp"
#include "tools/gclctl/shared_memory.hpp"
#include "tools/gclctl/stop.hpp"
#include "tools/gclctl/verbs.hpp"

namespace gclctl {
namespace {

constexpr auto kStopMax = std::chrono::seconds(120);

}  // namespace

// All are told before any is waited for: a primary that leaves gives its pages back, which needs no peer.
void signal_and_wait(const Cluster& c, const std::vector<int>& nodes, int signal) {
  for (int k : nodes)
    if (int pid = c.postmaster(k); pid != 0 && kill(pid, signal) != 0 && errno != ESRCH)
      fail("cannot signal primary {} (process {})", k, pid);
  auto deadline = std::chrono::steady_clock::now() + kStopMax;
  for (int k : nodes) {
    while (c.postmaster(k) != 0) {
      if (std::chrono::steady_clock::now() > deadline) fail("primary {} still runs after {} s", k, kStopMax.count());
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }
}

namespace {

int stop_servers(const Cluster& c, int node, bool immediate) {
  std::vector<int> running;
  for (int k : c.chosen(node))
    if (c.postmaster(k) != 0) running.push_back(k);
  signal_and_wait(c, running, immediate ? SIGQUIT : SIGINT);
  fmt::print("{} of {} primaries stopped\n", running.size(), c.chosen(node).size());
  if (c.any_runs()) return 0;
  stop_memory_nodes(c);
  PoolState state = inspect_pool(c);
  if (state.kind == PoolState::Kind::kOrphaned) {
    fmt::print("the pool is in memory{}: the next start repairs it\n",
               immediate ? "" : ", and not all have left it in order");
    return 0;
  }
  if (state.kind == PoolState::Kind::kUnsaved) {
    save_pool(c);
    state = inspect_pool(c);
  }
  if (state.kind == PoolState::Kind::kClean) {
    drop_logs(c);
    fmt::print("the pool is saved in {}\n", c.saved_pool().string());
    return 0;
  }
  fmt::print(stderr, "gclctl: the pool was not closed cleanly: {}\n", state.text);
  return 1;
}

int destroy_servers(const Cluster& c) {
  signal_and_wait(c, c.numbers(), SIGQUIT);  // nothing is kept, so nothing is saved
  stop_memory_nodes(c);
  for (int k : c.numbers()) remove_shared_memory(c, k);
  std::error_code error;
  fs::remove_all(c.pool_dir(), error);
  if (c.socket_dir.parent_path() != c.dir) fs::remove_all(c.socket_dir, error);
  // The description goes last: a destroy that failed can be repeated.
  for (const auto& entry : fs::directory_iterator(c.dir))
    if (entry.path().filename() != Cluster::kFileName) fs::remove_all(entry.path());
  fs::remove(c.dir / Cluster::kFileName);
  return 0;
}

}  // namespace

int stop(const std::string& dir, int node, bool immediate) {
  Cluster c = Cluster::load(dir);
  return run_as(c.account, [&] { return stop_servers(c, node, immediate); });
}

int destroy(const std::string& dir) {
  Cluster c = Cluster::load(dir);
  if (int code = run_as(c.account, [&] { return destroy_servers(c); }); code != 0) return code;
  fs::remove(c.dir);  // it is empty
  fmt::print("{} is removed\n", c.dir.string());
  return 0;
}

}  // namespace gclctl

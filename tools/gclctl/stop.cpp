// gclctl stop: fast shutdown of the primaries together; the last one that leaves the pool saves it.  With --immediate
// they do not leave it: to the others that is a death.
#include <signal.h>
#include <sys/wait.h>

#include <cerrno>
#include <chrono>
#include <map>
#include <thread>

#include "tools/gclctl/cluster.hpp"
#include "tools/gclctl/failure.hpp"
#include "tools/gclctl/hosts.hpp"
#include "tools/gclctl/memory_node.hpp"
#include "tools/gclctl/patient_deadline.hpp"
#include "tools/gclctl/pool.hpp"
#include "tools/gclctl/process.hpp"
#include "tools/gclctl/removed_logs.hpp"
#include "tools/gclctl/served_pool.hpp"
#include "tools/gclctl/shared_memory.hpp"
#include "tools/gclctl/stop.hpp"
#include "tools/gclctl/stuck_shutdown.hpp"
#include "tools/gclctl/upgrade_note.hpp"
#include "tools/gclctl/verbs.hpp"

namespace gclctl {
namespace {

constexpr auto kStopMax = std::chrono::seconds(120);

}  // namespace

// All are told before any is waited for: a primary that leaves gives its pages back, which needs no peer.
void signal_and_wait(const Cluster& c, const std::vector<int>& nodes, int signal) {
  std::map<int, StuckShutdown> told;
  for (int k : nodes) {
    const int pid = c.postmaster(k);
    if (pid != 0 && kill(pid, signal) != 0 && errno != ESRCH) fail("cannot signal primary {} (process {})", k, pid);
    told.emplace(k, pid);
  }
  PatientDeadline deadline(c, kStopMax);
  for (int k : nodes) {
    while (const int pid = c.postmaster(k)) {
      if (told.at(k).is_certain()) {
        fmt::print(stderr, "gclctl: primary {} restarted after a crash, and stands still: it is stopped at once\n", k);
        (void)kill(pid, SIGQUIT);
        told.erase(k);
        told.emplace(k, 0);
      }
      if (deadline.is_over()) fail("primary {} still runs after {} s", k, kStopMax.count());
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }
}

namespace {

// What the pool is, memory node 0 says before it stops: its other parts are on other hosts.
int stop_memory_nodes_of_host(const Cluster& c, bool immediate) {
  if (const std::string why = still_in_pool(c); !why.empty()) {
    fmt::print(stderr, "gclctl: {}{}\n", why,
               immediate ? "" : ": the memory nodes of this host go on. Stop those first");
    if (!immediate) return 1;
  }
  const bool says = c.has_first_memory_node() && memory_node_process(c) != 0;
  const PoolState state = says ? ask_memory_node(c) : PoolState{PoolState::Kind::kClean, ""};
  stop_memory_nodes(c);
  const bool died = immediate && state.kind == PoolState::Kind::kInUse;
  if (state.kind == PoolState::Kind::kOrphaned || died)
    fmt::print("the pool is in memory, and not all have left it in order: the next start repairs it\n");
  else if (state.kind == PoolState::Kind::kClean)
    fmt::print("{}", says ? fmt::format("the pool is saved in {}\n", c.saved_pool().string()) : "");
  else
    fmt::print(stderr, "gclctl: the pool was not closed cleanly: {}\n", state.text);
  return state.kind == PoolState::Kind::kOrphaned || state.kind == PoolState::Kind::kClean || died ? 0 : 1;
}

int stop_servers(const Cluster& c, int node, bool immediate) {
  std::vector<int> running;
  for (int k : c.chosen(node)) {
    drop_upgrade_note(c, k);
    if (c.postmaster(k) != 0) running.push_back(k);
  }
  signal_and_wait(c, running, immediate ? SIGQUIT : SIGINT);
  fmt::print("{} of {} primaries stopped\n", running.size(), c.chosen(node).size());
  const auto memory_nodes = lock_memory_nodes(c);
  if (c.any_runs()) return 0;
  if (c.on_hosts()) return stop_memory_nodes_of_host(c, immediate);
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
  const bool fenced = state.kind == PoolState::Kind::kUnclean;
  fmt::print(stderr, "gclctl: the pool was not closed cleanly: {}{}\n", state.text,
             fenced ? "; the next start makes it again, out of its copy and the logs" : "");
  return 1;
}

int destroy_servers(const Cluster& c) {
  if (const std::string others = c.on_hosts() ? others_in_pool(c) : ""; !others.empty())
    fail("{}: stop those first", others);
  // Nothing is kept, so nothing is saved; but to primaries of other hosts it would be a death.
  signal_and_wait(c, c.numbers(), c.on_hosts() ? SIGINT : SIGQUIT);
  if (c.on_hosts()) (void)still_in_pool(c);  // a death that is certain by then holds up nobody
  stop_memory_nodes(c);
  for (int k : c.numbers()) {
    remove_shared_memory(c, k);
    c.remove_moved_data(k);
  }
  std::error_code error;
  fs::remove_all(c.pool_dir(), error);
  if (c.socket_dir.parent_path() != c.dir) fs::remove_all(c.socket_dir, error);
  if (c.on_hosts() && c.has_first_memory_node()) remove_saved_pool(c);
  // The description goes last: a destroy that failed can be repeated.
  for (const auto& entry : fs::directory_iterator(c.dir))
    if (const fs::path name = entry.path().filename(); name != Cluster::kFileName && name != Cluster::kUnfinished)
      fs::remove_all(entry.path());
  for (const char* name : {Cluster::kUnfinished, Cluster::kFileName}) fs::remove(c.dir / name);
  return 0;
}

}  // namespace

int stop(const std::string& dir, int node, bool immediate) {
  Cluster c = Cluster::load(dir);
  return run_as(c.account, [&] { return stop_servers(c, node, immediate); });
}

int destroy(const std::string& dir) {
  std::error_code unknown;
  const bool unfinished = !fs::exists(fs::path(dir) / Cluster::kFileName, unknown) &&
                          fs::exists(fs::path(dir) / Cluster::kUnfinished, unknown);
  const Cluster c = Cluster::load(dir, unfinished ? Cluster::kUnfinished : Cluster::kFileName);
  if (int code = run_as(c.account, [&] { return destroy_servers(c); }); code != 0) return code;
  fs::remove(c.dir);  // it is empty
  fmt::print("{} is removed\n", c.dir.string());
  return 0;
}

}  // namespace gclctl

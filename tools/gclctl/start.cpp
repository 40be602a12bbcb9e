// gclctl start: the primaries, each checked to answer.
#include <libpq-fe.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <deque>
#include <fstream>
#include <map>
#include <memory>
#include <thread>

#include "tools/gclctl/checks.hpp"
#include "tools/gclctl/cluster.hpp"
#include "tools/gclctl/directory.hpp"
#include "tools/gclctl/failure.hpp"
#include "tools/gclctl/hosts.hpp"
#include "tools/gclctl/memory_node.hpp"
#include "tools/gclctl/patient_deadline.hpp"
#include "tools/gclctl/pool.hpp"
#include "tools/gclctl/process.hpp"
#include "tools/gclctl/restart.hpp"
#include "tools/gclctl/shared_memory.hpp"
#include "tools/gclctl/start.hpp"
#include "tools/gclctl/upgrade_note.hpp"
#include "tools/gclctl/verbs.hpp"

namespace gclctl {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kDeathMax = std::chrono::seconds(20);   // beyond the patience of gcl_memnode
constexpr auto kStartMax = std::chrono::seconds(120);  // longer than gcl.rejoin_timeout, which a server may wait for
constexpr int kStatusLine = 8;                         // of postmaster.pid

struct Started {
  pid_t pid;          // 0: it was started before
  uint64_t log_from;  // where its words begin in the log
};

uint64_t bytes_of_log(const Cluster& c, int k) {
  std::error_code none;
  const uint64_t bytes = fs::file_size(c.log(k), none);
  return none ? 0 : bytes;
}

Started start_server(const Cluster& c, int k) {
  const uint64_t bytes = bytes_of_log(c, k);
  const fs::path data = c.data(k);
  return {start_daemon({(c.bindir(k) / "postgres").string(), "-D", data.string()}, data, c.log(k)), bytes};
}

constexpr size_t kLastLines = 10;

// The lines of a server's log that say why it stopped: all, of a few; of more those of a level, or the last ones.
std::string last_words(const fs::path& log, uint64_t from) {
  std::ifstream in(log);
  in.seekg(std::streamoff(from));
  std::string line, words;
  std::deque<std::string> last;
  bool more = false;
  while (std::getline(in, line)) {
    last.push_back(line);
    if (last.size() > kLastLines) last.pop_front(), more = true;
    for (const char* level : {"FATAL:", "PANIC:", "ERROR:", "HINT:", "DETAIL:", "cannot run"})
      if (line.find(level) != std::string::npos) words += "\n  " + line;
  }
  if (more && !words.empty()) return words;
  if (last.empty()) return "\n  (it has said nothing in " + log.string() + ")";
  return fmt::format("\n  {}", fmt::join(last, "\n  "));
}

bool answers(const Cluster& c, int k) { return PQping(c.impatient_dsn(k).c_str()) == PQPING_OK; }

// Since its postmaster was started.
bool was_ready(const fs::path& data) {
  std::ifstream pid_file(data / "postmaster.pid");
  std::string line;
  for (int i = 0; i < kStatusLine; ++i)
    if (!std::getline(pid_file, line)) return false;
  return line.starts_with("ready");
}

// One that runs, and does not serve yet: the command that started it was killed, or it restarts after a crash
// (gclctl.start-waits).  One that stands still is none.
bool is_on_its_way(const Cluster& c, int k) {
  const PGPing is = PQping(c.impatient_dsn(k).c_str());
  return is == PQPING_REJECT || (is != PQPING_OK && !was_ready(c.data(k)));
}

bool has_ended(const Cluster& c, int k, const Started& server) {
  return server.pid == 0 ? c.postmaster(k) == 0 : waitpid(server.pid, nullptr, WNOHANG) == server.pid;
}

LostPool lost_pool(const Cluster& c) {
  make_pool_dir(c);
  LostPool lost{c.pool(), c.saved_pool(), compatibility_of(c), {}};
  for (const int k : c.numbers()) lost.logs[k] = logs_of(c, k);
  return lost;
}

// The memory node of a cluster over tcp takes a moment to be certain that a primary is dead.
PoolState settled_pool(const Cluster& c, bool anybody_runs) {
  PoolState state = inspect_pool(c);
  for (const auto deadline = Clock::now() + c.patience() + kDeathMax;
       c.over_tcp() && !anybody_runs && state.kind == PoolState::Kind::kInUse && Clock::now() < deadline;
       state = inspect_pool(c))
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  return state;
}

// The pool must be usable before any server is asked to open it; the first one loads the saved pool into memory.
void check_pool(const Cluster& c, bool anybody_runs) {
  PoolState state = settled_pool(c, anybody_runs);
  if (state.kind == PoolState::Kind::kUnclean && !anybody_runs) {
    fmt::print("the pool is fenced: {}\n", state.text);
    fflush(stdout);
    stop_memory_nodes(c);
  }
  if ((state.kind == PoolState::Kind::kLost || state.kind == PoolState::Kind::kUnclean) && !anybody_runs) {
    restart_pool(lost_pool(c));
    state = inspect_pool(c);
  }
  switch (state.kind) {
    case PoolState::Kind::kClean:
      return;
    case PoolState::Kind::kUnsaved:  // it is whole in memory, and saved at the next stop
      fmt::print(stderr, "gclctl: {}\n", state.text);
      return;
    case PoolState::Kind::kOrphaned:
      fmt::print("all primaries have died: the first that starts repairs the pool\n");
      return;
    case PoolState::Kind::kInUse:
      if (!anybody_runs) fail("the pool is in use by servers that gclctl does not know of");
      return;
    case PoolState::Kind::kLost:
      fail(
          "memory has lost the pool, and primaries run that were started without it: stop them with gclctl stop {0}; "
          "gclctl start {0} makes it again then",
          c.dir.string());
    case PoolState::Kind::kUnclean:
      fail(
          "the pool is fenced ({0}), and primaries run: stop them with gclctl stop {1}; then gclctl start {1} makes it "
          "again",
          state.text, c.dir.string());
    case PoolState::Kind::kDamaged:
      fail("the pool is damaged: {}", state.text);
    case PoolState::Kind::kForeign:
      fail("these servers cannot use the pool: {}; docs/UPGRADING.md says which can", state.text);
    case PoolState::Kind::kAbsent:
      fail("the pool is gone: {}", state.text);
  }
}

// Of two postmasters that find the lock file of a dead one, either may remove the other's: no two are started on one
// data directory at a time.  A command that comes second waits, and finds a primary that runs.
std::vector<std::unique_ptr<coherence::PoolLock>> lock_starts(const Cluster& c, int node) {
  std::vector<std::unique_ptr<coherence::PoolLock>> locks;
  for (const int k : c.chosen(node))
    if (fs::exists(c.data(k).parent_path()))  // or its data is gone, and the step that needs it says so
      locks.push_back(lock_start(c, k));
  return locks;
}

}  // namespace

std::unique_ptr<coherence::PoolLock> lock_start(const Cluster& c, int k) {
  const fs::path file = c.data(k).parent_path() / "start";
  auto lock = std::make_unique<coherence::PoolLock>(file.c_str());
  if (!lock->held()) fail("cannot lock {}.lock: {}", file.string(), strerror(errno));
  return lock;
}

int start_servers(const Cluster& c, int node) {
  const auto locks = lock_starts(c, node);
  auto memory_nodes = lock_memory_nodes(c);
  bool anybody_runs = c.any_runs();
  std::error_code unknown;
  if (!c.on_hosts()) {  // there the daemons look at their files
    if (!anybody_runs)  // a backend that its postmaster has left behind may still write its log
      for (const int k : c.chosen(0))
        if (!wait_until_unused(c, k)) fail("processes of primary {} are left from before, and do not end", k);
    if (!anybody_runs) {
      remove_given_up(c.pool());
      wait_while_memory_node_loads(c);
    }
    if (!anybody_runs && !fs::exists(c.pool(), unknown)) stop_memory_nodes(c);  // it serves what has no name any more
    check_pool(c, anybody_runs);
  }
  std::vector<int> wanted;
  std::map<int, Started> started;
  for (int k : c.chosen(node)) {
    if (c.postmaster(k) != 0) {
      if (is_on_its_way(c, k))
        started[k] = {0, bytes_of_log(c, k)};
      else
        fmt::print("primary {} runs already\n", k);
      continue;
    }
    check_port_free(c, k);
    (void)wait_until_unused(c, k);  // or PostgreSQL says what is wrong
    wanted.push_back(k);
  }
  check_memory(c, int(wanted.size()), c.on_hosts() ? planned_bytes(c) : bytes_to_load(c.pool(), c.saved_pool()));
  make_pool_dir(c);
  make_private_directory(c.socket_dir);
  start_memory_nodes(c);
  memory_nodes.reset();
  if (c.on_hosts() && !wanted.empty()) wait_for_memory_nodes(c);
  for (int k : wanted) started[k] = start_server(c, k);
  PatientDeadline deadline(c, kStartMax);
  int failures = 0;
  while (!started.empty()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    for (auto it = started.begin(); it != started.end();) {
      const auto& [k, server] = *it;
      if (has_ended(c, k, server)) {
        fmt::print(stderr, "primary {} did not start:{}\n", k, last_words(c.log(k), server.log_from));
        failures++;
      } else if (answers(c, k)) {
        drop_upgrade_note(c, k);
        fmt::print("primary {} is up: psql \"{}\"\n", k, c.dsn(k));
      } else if (deadline.is_over()) {
        fmt::print(stderr, "primary {} does not answer after {} s; see {}\n", k, kStartMax.count(), c.log(k).string());
        failures++;
      } else {
        ++it;
        continue;
      }
      it = started.erase(it);
    }
  }
  return failures == 0 ? 0 : 1;
}

int start(const std::string& dir, int node) {
  Cluster c = Cluster::load(dir);
  return run_as(c.account, [&] { return start_servers(c, node); });
}

}  // namespace gclctl

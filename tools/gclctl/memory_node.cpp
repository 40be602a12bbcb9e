#include "tools/gclctl/memory_node.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <fstream>
#include <memory>
#include <thread>
#include <vector>

#include "bufmgr/pool_layout.hpp"
#include "coherence/region/memory_file.hpp"
#include "tools/gclctl/configuration.hpp"
#include "tools/gclctl/directory.hpp"
#include "tools/gclctl/failure.hpp"
#include "tools/gclctl/patient_deadline.hpp"
#include "tools/gclctl/pool.hpp"
#include "tools/gclctl/prefix.hpp"
#include "tools/gclctl/process.hpp"
#include "tools/gclctl/served_pool.hpp"
#include "tools/gclctl/text_file.hpp"

namespace gclctl {
namespace {

constexpr auto kServesMax = std::chrono::seconds(120);
constexpr auto kEndMax = std::chrono::seconds(60);
constexpr auto kUsedMax = std::chrono::seconds(30);
constexpr auto kLook = std::chrono::milliseconds(20);
constexpr const char* kProgram = "gcl_memnode";

fs::path directory(const Cluster& c, uint32_t k) { return c.dir / fmt::format("memory{}", k); }
fs::path log_file(const Cluster& c, uint32_t k) { return directory(c, k) / "log"; }
fs::path pid_file(const Cluster& c, uint32_t k) { return directory(c, k) / "pid"; }
uint32_t count_of(const Cluster& c) {
  return uint32_t(c.plan ? c.plan->memory_nodes.size() : extent_of_pool(c.pool(), c.saved_pool()).files.size());
}

std::string first_line(const fs::path& file) {
  std::ifstream in(file);
  std::string line;
  if (!std::getline(in, line) && in.bad()) fail("cannot read {}: {}", file.string(), strerror(errno));
  return line;
}

// What it said last.
std::string last_line(const fs::path& log) {
  std::ifstream in(log);
  std::string last;
  for (std::string line; std::getline(in, line);) last = line;
  return last;
}

bool listens(const Cluster& c) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at = {};
  at.sin_family = AF_INET;
  at.sin_port = htons(uint16_t(c.memory_port));
  at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const bool there = connect(fd, reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0;
  close(fd);
  return there;
}

}  // namespace

std::string memory_node_address(const Cluster& c) {
  return c.plan ? c.plan->memory_nodes[0].address : fmt::format("127.0.0.1:{}", c.memory_port);
}

std::string cluster_key(const Cluster& c) { return c.plan ? c.plan->key : (c.dir / "cluster.key").string(); }

void make_cluster_key(const Cluster& c) {
  if (!c.over_tcp()) return;
  unsigned char secret[32];
  if (getrandom(secret, sizeof secret, 0) != ssize_t(sizeof secret)) fail("no random bytes: {}", strerror(errno));
  const std::string text = fmt::format("{:02x}\n", fmt::join(secret, ""));
  const int fd = open(cluster_key(c).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  const coherence::File file(fd);
  if (fd < 0 || write(fd, text.data(), text.size()) != ssize_t(text.size()) || fsync(fd) != 0 ||
      !coherence::sync_directory_of(cluster_key(c).c_str()))  // a plan may have it on another disk than the cluster's
    fail("cannot write {}: {}", cluster_key(c), strerror(errno));
}

int memory_node_process(const Cluster& c, uint32_t k) {
  const int pid = atoi(first_line(pid_file(c, k)).c_str());
  if (!c.over_tcp() || pid <= 0) return 0;
  // The number may be another process's by now, another cluster's memory node's too.
  const Arguments arguments = arguments_of(pid);
  const bool ours = arguments.size() > 1 && fs::path(arguments[0]).filename() == kProgram &&
                    arguments[1] == coherence::MemoryPath(c.pool().c_str(), k).text;
  return ours ? pid : 0;
}

namespace {

// Starts number `k`, and waits for what `serves` says.
template <class Serves>
void start_new(const Cluster& c, uint32_t k, const std::vector<std::string>& arguments, const Serves& serves) {
  make_private_directory(directory(c, k));
  std::vector<std::string> command = {(c.any_bindir() / kProgram).string(),
                                      coherence::MemoryPath(c.pool().c_str(), k).text,
                                      "--saved",
                                      c.saved_pool().string(),
                                      "--key",
                                      cluster_key(c),
                                      "--patience",
                                      fmt::format("{}", c.patience().count())};
  if (c.over_verbs()) command.emplace_back("--verbs");
  if (!c.rdma_device.empty()) command.insert(command.end(), {"--device", c.rdma_device});
  command.insert(command.end(), arguments.begin(), arguments.end());
  const pid_t pid = start_daemon(command, directory(c, k), log_file(c, k));
  write_text(pid_file(c, k), std::to_string(pid) + "\n");
  for (PatientDeadline deadline(c, kServesMax); !serves(); std::this_thread::sleep_for(kLook)) {
    if (waitpid(pid, nullptr, WNOHANG) == pid)
      fail("memory node {} did not start: {} (gclctl verify checks the saved pool)", k, last_line(log_file(c, k)));
    if (!deadline.is_over()) continue;
    kill(pid, SIGTERM);  // or it would come when nobody waits for it any more
    fail("memory node {} does not serve after {} s: {}", k, kServesMax.count(), last_line(log_file(c, k)));
  }
}

// A command that was killed has left one that loads the pool; it serves then, or ends, as it may have been told to.
template <class Serves>
void wait_while_loading(const Cluster& c, uint32_t k, const Serves& serves) {
  PatientDeadline deadline(c, kServesMax);
  while (memory_node_process(c, k) != 0 && !fs::exists(coherence::MemoryPath(c.pool().c_str(), k).text) && !serves()) {
    if (deadline.is_over())
      fail("memory node {} (process {}) has loaded nothing for {} s: {}", k, memory_node_process(c, k),
           kServesMax.count(), last_line(log_file(c, k)));
    std::this_thread::sleep_for(kLook);
  }
}

// The same, if it does not run; whether it has started it.
template <class Serves>
bool start_one(const Cluster& c, uint32_t k, const std::vector<std::string>& arguments, const Serves& serves) {
  wait_while_loading(c, k, serves);
  if (memory_node_process(c, k) != 0) return false;
  start_new(c, k, arguments, serves);
  return true;
}

std::vector<std::string> further_arguments(const Cluster& c) {
  return {"--listen", "127.0.0.1:0", "--first", memory_node_address(c)};
}

void stop_one(const Cluster& c, uint32_t k) {
  const int pid = memory_node_process(c, k);
  if (pid == 0) return;
  if (kill(pid, SIGTERM) != 0 && errno != ESRCH) fail("cannot signal memory node {} (process {})", k, pid);
  for (PatientDeadline deadline(c, kEndMax); memory_node_process(c, k) != 0; std::this_thread::sleep_for(kLook))
    if (deadline.is_over()) fail("memory node {} (process {}) still runs after {} s", k, pid, kEndMax.count());
  std::error_code ignored;
  fs::remove(pid_file(c, k), ignored);
}

}  // namespace

std::unique_ptr<coherence::PoolLock> lock_memory_nodes(const Cluster& c) {
  if (!c.over_tcp()) return nullptr;
  auto lock = std::make_unique<coherence::PoolLock>((c.dir / "memory-nodes").c_str());
  if (!lock->held()) fail("cannot lock {}: {}", (c.dir / "memory-nodes.lock").string(), strerror(errno));
  return lock;
}

namespace {

// Those of this host, as the plan says; the pool gets what it does not have yet.
void start_planned(const Cluster& c) {
  for (const PlannedMemoryNode& one : c.plan->memory_nodes) {
    if (one.host != c.host) continue;
    std::vector<std::string> arguments = {"--listen", one.listen.empty() ? one.address : one.listen};
    if (one.number != 0) {
      const auto pages = bufmgr::further_pages_bytes(one.bytes);
      if (!pages) fail("memory node {} would have no pages: give it more than {} MB", one.number, one.bytes >> 20);
      for (const std::string& argument : {std::string("--address"), one.address, std::string("--first"),
                                          memory_node_address(c), std::string("--pages"), fmt::format("{}", *pages)})
        arguments.push_back(argument);
    }
    if (!start_one(c, one.number, arguments, [&] { return memory_node_is_here(c, one.number); })) continue;
    fmt::print("memory node {} is up: {}\n", one.number, one.address);
    fflush(stdout);
    if (const std::string unused = wait_until_used(c, one.number); !unused.empty())
      fmt::print(stderr, "gclctl: {}\n", unused);
  }
}

}  // namespace

void wait_while_memory_node_loads(const Cluster& c) {
  wait_while_loading(c, 0, [&] { return listens(c); });
}

void start_memory_nodes(const Cluster& c) {
  if (!c.over_tcp()) return;
  if (c.plan) return start_planned(c);
  (void)start_one(c, 0, {"--listen", memory_node_address(c)}, [&] { return listens(c); });
  for (uint32_t k = 1; k < count_of(c); k++)
    (void)start_one(c, k, further_arguments(c), [&] { return memory_node_is_here(c, k); });
}

// One at a time: the next number is one process's.
void start_new_memory_node(const Cluster& c, uint64_t pages_bytes) {
  const coherence::PoolLock one((c.dir / "add-memory").c_str());
  if (!one.held()) fail("cannot lock {}: {}", (c.dir / "add-memory.lock").string(), strerror(errno));
  const uint32_t k = count_of(c);
  std::vector<std::string> arguments = further_arguments(c);
  arguments.insert(arguments.end(), {"--pages", fmt::format("{}", pages_bytes)});
  start_new(c, k, arguments, [&] { return memory_node_is_here(c, k); });
}

std::string wait_until_used(const Cluster& c, uint32_t k) {
  if (!c.over_tcp() || k == 0) return "";
  for (const auto over = std::chrono::steady_clock::now() + kUsedMax;; std::this_thread::sleep_for(kLook)) {
    const std::string why = why_unused(c, k);
    if (why.empty()) return "";
    if (std::chrono::steady_clock::now() > over)
      return fmt::format(
          "memory node {} is the pool's, but not used yet: {}. Let them reach it (a firewall; its address; the log of "
          "the primary says more): it is used as soon as all do. Do not add it again",
          k, why);
  }
}

void stop_memory_nodes(const Cluster& c) {
  if (!c.over_tcp()) return;
  for (uint32_t k = 0; k < uint32_t(coherence::kMemoryNodesMax); k++) stop_one(c, k);
}

MemoryNodesInWords memory_nodes_in_words(const Cluster& c) {
  if (!c.over_tcp()) return {};
  const int first = memory_node_process(c);
  if (first == 0) return {fmt::format("memory     {}  down\n", memory_node_address(c)), false};
  MemoryNodesInWords words{.text = "", .all_serve = listens(c)};
  words.text =
      fmt::format("memory     {}  {}\n", memory_node_address(c),
                  words.all_serve ? fmt::format("up (process {})", first)
                                  : fmt::format("process {} does not listen; see {}", first, log_file(c, 0).string()));
  for (uint32_t k = 1; k < count_of(c); k++) {
    const int pid = memory_node_process(c, k);
    const bool here = pid != 0 && memory_node_is_here(c, k);
    const std::string unused = pid == 0 ? "" : why_unused(c, k);
    words.text +=
        fmt::format("memory {}   {}{}\n", k,
                    pid == 0 ? "down" : fmt::format("{} (process {})", here ? "up" : "not with memory node 0", pid),
                    unused.empty() ? "" : ", not used yet: " + unused);
    words.all_serve &= here;
  }
  return words;
}

std::map<std::string, std::string> memory_node_settings(const Cluster& c, int k) {
  if (!c.over_tcp()) return {};
  std::map<std::string, std::string> settings = {
      {"gcl.transport", c.transport},
      {"gcl.memory_nodes", quoted_setting(memory_node_address(c))},
      {"gcl.listen_address", quoted_setting(k > 0 && c.plan ? c.plan->primary(k)->address : "127.0.0.1:0")},
      {"gcl.key_file", quoted_setting(cluster_key(c))}};
  if (!c.rdma_device.empty()) settings["gcl.rdma_device"] = quoted_setting(c.rdma_device);
  return settings;
}

}  // namespace gclctl

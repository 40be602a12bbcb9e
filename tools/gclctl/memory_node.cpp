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
#include <thread>

#include "tools/gclctl/configuration.hpp"
#include "tools/gclctl/directory.hpp"
#include "tools/gclctl/failure.hpp"
#include "tools/gclctl/prefix.hpp"
#include "tools/gclctl/process.hpp"

namespace gclctl {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kServesMax = std::chrono::seconds(120);  // it may load the pool from the disk
constexpr auto kEndMax = std::chrono::seconds(60);
constexpr auto kLook = std::chrono::milliseconds(20);
constexpr const char* kProgram = "gcl_memnode";

fs::path directory(const Cluster& c) { return c.dir / "memory0"; }
fs::path log_file(const Cluster& c) { return directory(c) / "log"; }
fs::path pid_file(const Cluster& c) { return directory(c) / "pid"; }

std::string first_line(const fs::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
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

std::string memory_node_address(const Cluster& c) { return fmt::format("127.0.0.1:{}", c.memory_port); }

std::string cluster_key(const Cluster& c) { return c.dir / "cluster.key"; }

void make_cluster_key(const Cluster& c) {
  if (!c.over_tcp()) return;
  unsigned char secret[32];
  if (getrandom(secret, sizeof secret, 0) != ssize_t(sizeof secret)) fail("no random bytes: {}", strerror(errno));
  const std::string text = fmt::format("{:02x}\n", fmt::join(secret, ""));
  const int fd = open(cluster_key(c).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0 || write(fd, text.data(), text.size()) != ssize_t(text.size()) || close(fd) != 0)
    fail("cannot write {}: {}", cluster_key(c), strerror(errno));
}

int memory_node_process(const Cluster& c) {
  const int pid = atoi(first_line(pid_file(c)).c_str());
  if (!c.over_tcp() || pid <= 0) return 0;
  return first_line(fmt::format("/proc/{}/comm", pid)) == kProgram ? pid : 0;
}

void start_memory_node(const Cluster& c) {
  if (!c.over_tcp() || memory_node_process(c) != 0) return;
  make_private_directory(directory(c));
  const fs::path program = c.bindir(c.chosen(0).front()) / kProgram;
  const pid_t pid = start_daemon({program.string(), c.pool().string(), "--saved", c.saved_pool().string(), "--listen",
                                  memory_node_address(c), "--key", cluster_key(c)},
                                 directory(c), log_file(c));
  std::ofstream(pid_file(c)) << pid << "\n";
  for (const auto deadline = Clock::now() + kServesMax; !listens(c); std::this_thread::sleep_for(kLook)) {
    if (waitpid(pid, nullptr, WNOHANG) == pid)
      fail("the memory node did not start: {} (gclctl verify checks the saved pool)", last_line(log_file(c)));
    if (Clock::now() > deadline)
      fail("the memory node does not listen after {} s; see {}", kServesMax.count(), log_file(c).string());
  }
}

void stop_memory_node(const Cluster& c) {
  const int pid = memory_node_process(c);
  if (pid == 0) return;
  if (kill(pid, SIGTERM) != 0 && errno != ESRCH) fail("cannot signal the memory node (process {})", pid);
  for (const auto deadline = Clock::now() + kEndMax; memory_node_process(c) != 0; std::this_thread::sleep_for(kLook))
    if (Clock::now() > deadline) fail("the memory node (process {}) still runs after {} s", pid, kEndMax.count());
  std::error_code ignored;
  fs::remove(pid_file(c), ignored);
}

std::string memory_node_in_words(const Cluster& c) {
  if (!c.over_tcp()) return "";
  const int pid = memory_node_process(c);
  if (pid == 0) return fmt::format("memory     {}  down\n", memory_node_address(c));
  return fmt::format("memory     {}  {}\n", memory_node_address(c),
                     listens(c) ? fmt::format("up (process {})", pid)
                                : fmt::format("process {} does not listen; see {}", pid, log_file(c).string()));
}

std::map<std::string, std::string> memory_node_settings(const Cluster& c) {
  if (!c.over_tcp()) return {};
  return {{"gcl.transport", "tcp"},
          {"gcl.memory_nodes", quoted_setting(memory_node_address(c))},
          {"gcl.listen_address", "'127.0.0.1:0'"},
          {"gcl.key_file", quoted_setting(cluster_key(c))}};
}

}  // namespace gclctl

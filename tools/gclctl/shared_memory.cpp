#include "tools/gclctl/shared_memory.hpp"

#include <signal.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <fstream>
#include <sstream>
#include <thread>

#include "coherence/base/os.hpp"
#include "tools/gclctl/failure.hpp"
#include "tools/gclctl/process.hpp"

namespace gclctl {
namespace {

constexpr auto kUnusedMax = std::chrono::seconds(10);
constexpr int kShmemLine = 7;  // of postmaster.pid: key and id of the shared memory

// Whether the process has the segment mapped, and works in that directory: as all processes of one server do.
bool is_of_server(const std::string& pid, int segment, const fs::path& data) {
  if (!works_in(std::stoi(pid), data).value_or(false)) return false;
  std::ifstream maps("/proc/" + pid + "/maps");
  for (std::string line; std::getline(maps, line);) {
    std::istringstream words(line);
    std::string place, rights, offset, device, name;
    long long file = -1;
    if (words >> place >> rights >> offset >> device >> file >> name && file == segment && name.starts_with("/SYSV"))
      return true;
  }
  return false;
}

// By a descriptor of the process, so that no other one that has got its number meanwhile is killed.
bool kill_if_of_server(const std::string& pid, int segment, const fs::path& data) {
  const int process = int(syscall(SYS_pidfd_open, std::stoi(pid), 0));
  if (process < 0) return false;
  const bool killed =
      is_of_server(pid, segment, data) && syscall(SYS_pidfd_send_signal, process, SIGKILL, nullptr, 0) == 0;
  close(process);
  return killed;
}

void kill_what_is_left(int k, int segment, const fs::path& data) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    const std::string pid = entry.path().filename().string();
    if (pid.empty() || pid.size() > 9 ||
        !std::ranges::all_of(pid, [](unsigned char c) { return std::isdigit(c) != 0; }))
      continue;
    if (is_of_server(pid, segment, data) && kill_if_of_server(pid, segment, data))
      fmt::print(stderr, "gclctl: killed process {}, which has outlived the former server of primary {}\n", pid, k);
  }
}

template <class Condition>
bool wait_while(const Condition& condition) {
  const auto until = std::chrono::steady_clock::now() + kUnusedMax;
  while (condition()) {
    if (std::chrono::steady_clock::now() >= until) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return true;
}

}  // namespace

bool wait_until_unused(const Cluster& c, int k) {
  std::ifstream pid_file(c.data(k) / "postmaster.pid");
  std::string line;
  int key, id, pid = 0;
  std::getline(pid_file, line);
  std::istringstream(line) >> pid;
  for (int i = 1; i < kShmemLine; ++i) std::getline(pid_file, line);
  if (!(std::istringstream(line) >> key >> id)) return true;
  const auto is_zombie = [=] {
    return pid > 0 && kill(pid, 0) == 0 && coherence::look_at_process(pid).is == coherence::ProcessSight::Is::kGone;
  };
  const auto is_used = [=] {
    shmid_ds segment;
    return is_zombie() || (shmctl(id, IPC_STAT, &segment) == 0 && segment.shm_nattch > 0);
  };
  if (wait_while(is_used)) return true;
  if (pid <= 0 || c.postmaster(k) != 0) return false;
  kill_what_is_left(k, id, c.data(k));
  return wait_while(is_used);
}

// PostgreSQL's own trial of a data directory removes it, and does no more than that.
void remove_shared_memory(const Cluster& c, int k) {
  if (!fs::exists(c.data(k) / "postmaster.pid")) return;
  (void)wait_until_unused(c, k);
  try {
    output_of({(c.bindir(k) / "postgres").string(), "--check", "-D", c.data(k).string()});
  } catch (const Failure& e) {  // it may be damaged beyond that
    fmt::print(stderr, "gclctl: shared memory of primary {} may be left: {}\n", k, e.what());
  }
}

}  // namespace gclctl

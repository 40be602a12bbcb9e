#include "tools/gclctl/shared_memory.hpp"

#include <signal.h>
#include <sys/shm.h>

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

}  // namespace

void wait_until_unused(const Cluster& c, int k) {
  std::ifstream pid_file(c.data(k) / "postmaster.pid");
  std::string line;
  int key, id, pid = 0;
  std::getline(pid_file, line);
  std::istringstream(line) >> pid;
  for (int i = 1; i < kShmemLine; ++i) std::getline(pid_file, line);
  if (!(std::istringstream(line) >> key >> id)) return;
  const auto is_used = [=] {
    shmid_ds segment;
    return (pid > 0 && kill(pid, 0) == 0 && coherence::look_at_process(pid).is == coherence::ProcessSight::Is::kGone) ||
           (shmctl(id, IPC_STAT, &segment) == 0 && segment.shm_nattch > 0);
  };
  const auto until = std::chrono::steady_clock::now() + kUnusedMax;
  while (is_used() && std::chrono::steady_clock::now() < until)
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

// PostgreSQL's own trial of a data directory removes it, and does no more than that.
void remove_shared_memory(const Cluster& c, int k) {
  if (!fs::exists(c.data(k) / "postmaster.pid")) return;
  wait_until_unused(c, k);
  try {
    output_of({(c.bindir(k) / "postgres").string(), "--check", "-D", c.data(k).string()});
  } catch (const Failure& e) {  // it may be damaged beyond that
    fmt::print(stderr, "gclctl: shared memory of primary {} may be left: {}\n", k, e.what());
  }
}

}  // namespace gclctl

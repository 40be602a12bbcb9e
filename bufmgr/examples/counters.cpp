// A shared array of counters: some processes, each a node of the pool, add to counters at random; nothing is lost.
//
//   example_counters [PROCESSES [ADDS]]      exit 0 when the counters add up
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>

#include "bufmgr/global_memory.hpp"

namespace {

using bufmgr::GlobalMemory;
using bufmgr::GlobalThread;
using bufmgr::SLock;
using bufmgr::XLock;

constexpr uint32_t kLines = 16, kCountersPerLine = bufmgr::kLineBytes / 8;
constexpr uint32_t kFirstLine = 0,
                   kReady = kLines;  // words of the pool: the lines' names, and how many processes are there

[[noreturn]] void fail(const char* what, const char* why) {
  fprintf(stderr, "%s: %s\n", what, why);
  _exit(1);
}

uint64_t word(coherence::Result<uint64_t> value) {
  if (!value) fail("word", errc_name(value.error()));
  return *value;
}

std::unique_ptr<GlobalMemory> join(const char* path, int node) {
  coherence::Problem problem;
  auto memory = GlobalMemory::join(path, {.node = {uint8_t(node)}}, &problem);
  if (!memory) fail("join", problem.text);
  return memory.take();
}

coherence::PageId line_of(GlobalThread& thread, uint32_t i) { return {word(thread.load(kFirstLine + i))}; }

void add(GlobalThread& thread, uint32_t counter, uint64_t addend) {
  XLock lock(thread, line_of(thread, counter / kCountersPerLine));
  if (!lock) fail("lock", errc_name(lock.error()));
  const uint32_t at = counter % kCountersPerLine * 8;
  lock.set<uint64_t>(at, lock.get<uint64_t>(at) + addend);
}

uint64_t sum(GlobalThread& thread) {
  uint64_t total = 0;
  for (uint32_t i = 0; i < kLines; ++i) {
    SLock lock(thread, line_of(thread, i));
    if (!lock) fail("lock", errc_name(lock.error()));
    for (uint32_t at = 0; at < kCountersPerLine; ++at) total += lock.get<uint64_t>(at * 8);
  }
  return total;
}

void work(const char* path, int node, uint64_t processes, uint64_t adds) {
  auto memory = join(path, node);
  GlobalThread thread(*memory);
  word(thread.fetch_add(kReady, 1));
  for (; word(thread.load(kReady)) <= processes; usleep(1000))  // for all the others, and the lines
    if (memory->pool().fenced()) fail("join", "a process died");
  std::mt19937 random(unsigned(node) + 1);
  for (uint64_t i = 0; i < adds; ++i) add(thread, uint32_t(random() % (kLines * kCountersPerLine)), 1);
}

}  // namespace

int main(int argc, char** argv) {
  const int processes = argc > 1 ? atoi(argv[1]) : 3;
  const uint64_t adds = argc > 2 ? strtoull(argv[2], nullptr, 10) : 20000;
  if (processes < 1 || processes > 57 || adds == 0) fail("usage", "example_counters [1-57 PROCESSES [ADDS]]");
  const std::string path = "/dev/shm/gcl-example-counters-" + std::to_string(getpid());
  coherence::Problem problem;
  if (!GlobalMemory::create(path.c_str(), {.nodes_max = uint32_t(processes) + 1}, &problem))
    fail("create", problem.text);
  for (int node = 1; node <= processes; ++node)
    if (fork() == 0) {
      work(path.c_str(), node, uint64_t(processes), adds);
      _exit(0);
    }

  uint64_t found;
  bool well = true;
  {
    auto memory = join(path.c_str(), 0);
    GlobalThread thread(*memory);
    for (uint32_t i = 0; i < kLines; ++i) {
      auto line = thread.allocate();
      if (!line) fail("allocate", errc_name(line.error()));
      word(thread.compare_and_swap(kFirstLine + i, 0, line->raw));
    }
    word(thread.fetch_add(kReady, 1));
    for (int status; wait(&status) > 0;) well &= WIFEXITED(status) && WEXITSTATUS(status) == 0;
    found = sum(thread);
  }
  GlobalMemory::remove(path.c_str());
  printf("%d processes added %lu each: %lu\n", processes, adds, found);
  return well && found == uint64_t(processes) * adds ? 0 : 1;
}

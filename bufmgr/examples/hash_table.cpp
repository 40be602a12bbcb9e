// A hash table from 64-bit keys to 64-bit values: a line per bucket, chains where one overflows.  Some processes, each
// a node of the pool, count words; every process then finds every count.
//
//   example_hash_table [PROCESSES [WORDS]]      exit 0 when all counts are right everywhere
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

#include "bufmgr/global_memory.hpp"

namespace {

using bufmgr::GlobalMemory;
using bufmgr::GlobalThread;
using bufmgr::SLock;
using bufmgr::XLock;

constexpr uint32_t kBuckets = 8, kReady = kBuckets,
                   kDone = kBuckets + 1;  // words of the pool: the buckets' lines first
constexpr uint32_t kKeys = 10000;         // more than the buckets' own lines hold

// A line is named by its number, 0 is none.  It has: its entries' number, the next line of the chain, entries of a key
// and a value.
constexpr uint32_t kCount = 0, kNext = 8, kEntries = 16, kEntryBytes = 16;
constexpr uint64_t kEntriesMax = (bufmgr::kLineBytes - kEntries) / kEntryBytes;

[[noreturn]] void fail(const char* what, const char* why) {
  fprintf(stderr, "%s: %s\n", what, why);
  _exit(1);
}

uint64_t word(coherence::Result<uint64_t> value) {
  if (!value) fail("word", errc_name(value.error()));
  return *value;
}

class HashTable {
 public:
  explicit HashTable(GlobalThread& thread) : thread_(thread) {}

  void make() {
    for (uint32_t i = 0; i < kBuckets; ++i) word(thread_.compare_and_swap(i, 0, new_line()));
  }

  // Adds to the key's value; a key that is not there has 0.
  void add(uint64_t key, uint64_t addend) {
    if (spare_ == 0) spare_ = new_line();  // bufmgr.one-lock-per-thread
    for (uint64_t line = bucket(key); line != 0;) line = add_in(line, key, addend);
  }

  uint64_t get(uint64_t key) {
    for (uint64_t line = bucket(key); line != 0;) {
      SLock lock(thread_, {line});
      if (!lock) fail("lock", errc_name(lock.error()));
      const auto count = lock.get<uint64_t>(kCount);
      const uint32_t at = find(lock, count, key);
      if (at < kEntries + count * kEntryBytes) return lock.get<uint64_t>(at + 8);
      line = lock.get<uint64_t>(kNext);
    }
    return 0;
  }

 private:
  // The line to go on with; none: it is done.  A key's place is the first line of its chain that has it, or else has
  // room.
  uint64_t add_in(uint64_t line, uint64_t key, uint64_t addend) {
    XLock lock(thread_, {line});
    if (!lock) fail("lock", errc_name(lock.error()));
    const auto count = lock.get<uint64_t>(kCount);
    const uint32_t at = find(lock, count, key);
    const bool found = at < kEntries + count * kEntryBytes;
    if (!found && count == kEntriesMax) {
      if (lock.get<uint64_t>(kNext) == 0) lock.set(kNext, std::exchange(spare_, 0));
      return lock.get<uint64_t>(kNext);
    }
    lock.set(at, key);
    lock.set(at + 8, (found ? lock.get<uint64_t>(at + 8) : 0) + addend);
    if (!found) lock.set(kCount, count + 1);
    return 0;
  }
  uint64_t bucket(uint64_t key) { return word(thread_.load(uint32_t(key * 0x9e3779b97f4a7c15 >> 32) % kBuckets)); }
  template <class Lock>
  static uint32_t find(const Lock& lock, uint64_t count, uint64_t key) {
    uint32_t at = kEntries;
    while (at < kEntries + count * kEntryBytes && lock.template get<uint64_t>(at) != key) at += kEntryBytes;
    return at;
  }
  uint64_t new_line() {
    auto line = thread_.allocate();
    if (!line) fail("allocate", errc_name(line.error()));
    return line->raw;
  }

  GlobalThread& thread_;
  uint64_t spare_ = 0;
};

std::unique_ptr<GlobalMemory> join(const char* path, int node) {
  coherence::Problem problem;
  auto memory = GlobalMemory::join(path, {.node = {uint8_t(node)}}, &problem);
  if (!memory) fail("join", problem.text);
  return memory.take();
}

void meet(GlobalMemory& memory, GlobalThread& thread, uint32_t at, uint64_t all) {
  for (word(thread.fetch_add(at, 1)); word(thread.load(at)) < all; usleep(1000))
    if (memory.pool().fenced()) fail("meet", "a process died");
}

void work(const char* path, int node, uint64_t all, uint64_t words) {
  auto memory = join(path, node);
  GlobalThread thread(*memory);
  meet(*memory, thread, kReady, all);  // the table is made
  HashTable table(thread);
  for (uint64_t i = 0; i < words; ++i) table.add((i * 7919 + uint64_t(node)) % kKeys, 1);
  meet(*memory, thread, kDone, all - 1);
  uint64_t total = 0;
  for (uint64_t key = 0; key < kKeys; ++key) total += table.get(key);
  if (total != (all - 1) * words) fail("count", "words are missing");
}

}  // namespace

int main(int argc, char** argv) {
  const int processes = argc > 1 ? atoi(argv[1]) : 3;
  const uint64_t words = argc > 2 ? strtoull(argv[2], nullptr, 10) : 20000;
  if (processes < 1 || processes > 57 || words == 0) fail("usage", "example_hash_table [1-57 PROCESSES [WORDS]]");
  const std::string path = "/dev/shm/gcl-example-hash-table-" + std::to_string(getpid());
  const uint64_t all = uint64_t(processes) + 1;
  coherence::Problem problem;
  if (!GlobalMemory::create(path.c_str(), {.nodes_max = uint32_t(all)}, &problem)) fail("create", problem.text);
  for (int node = 1; node <= processes; ++node)
    if (fork() == 0) {
      work(path.c_str(), node, all, words);
      _exit(0);
    }

  bool well = true;
  {
    auto memory = join(path.c_str(), 0);
    GlobalThread thread(*memory);
    HashTable(thread).make();
    meet(*memory, thread, kReady, all);
    for (int status; wait(&status) > 0;) well &= WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }
  GlobalMemory::remove(path.c_str());
  printf("%d processes counted %lu words each: %s\n", processes, words, well ? "all found by all" : "WRONG");
  return well ? 0 : 1;
}

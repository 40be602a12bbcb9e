// gclctl add-memory: a memory node more, whether the primaries run or not.
#include "tools/gclctl/checks.hpp"
#include "tools/gclctl/cluster.hpp"
#include "tools/gclctl/failure.hpp"
#include "tools/gclctl/memory_node.hpp"
#include "tools/gclctl/pool.hpp"
#include "tools/gclctl/process.hpp"
#include "tools/gclctl/verbs.hpp"

namespace gclctl {
namespace {

constexpr int kAddedOnly = 2;  // the exit code: the memory node is added, and is not to be added again

void check_room(const fs::path& tmpfs, const fs::path& file, const fs::path& saved, uint64_t bytes) {
  check_memory(tmpfs, bytes + bytes_to_load(file, saved), "the memory node", "add a smaller one");
}

int tell(const PoolExtent& pool, const std::string& why_not_saved, const std::string& what_to_do) {
  fmt::print("the pool has {} memory nodes and {} MB\n", pool.files.size(), megabytes(pool.bytes));
  if (why_not_saved.empty()) return 0;
  fflush(stdout);
  fmt::print(
      stderr,
      "gclctl: the memory node is added, but not saved: {}. It is there as long as this machine is up: do not add "
      "it again, but make room, then {}\n",
      why_not_saved, what_to_do);
  return kAddedOnly;
}

int add_to_cluster(const Cluster& c, uint64_t bytes) {
  check_room(c.memory_dir, c.pool(), c.saved_pool(), bytes);
  make_pool_dir(c);
  const std::string not_saved = add_memory_node(c, bytes);
  const PoolExtent pool = extent_of_pool(c.pool(), c.saved_pool());
  const int told = tell(pool, not_saved, "run gclctl stop " + c.dir.string());
  const std::string unused = wait_until_used(c, uint32_t(pool.files.size()) - 1);
  if (unused.empty()) return told;
  fflush(stdout);
  fmt::print(stderr, "gclctl: {}\n", unused);
  return kAddedOnly;
}

int add_to_file(const fs::path& file, const fs::path& saved, uint64_t bytes) {
  check_room(file.parent_path(), file, saved, bytes);
  const std::string not_saved = add_memory_node(file, saved, bytes);
  return tell(extent_of_pool(file, saved), not_saved, "start a server and stop it");
}

}  // namespace

int add_memory(const std::string& where, const std::string& size, const std::string& saved) {
  const uint64_t bytes = parse_size(size);
  if (bytes < kMemoryNodeBytesMin) fail("a memory node has at least {} MB", kMemoryNodeBytesMin >> 20);
  if (saved.empty()) {
    if (fs::is_regular_file(where)) fail("{} is a file: say where that pool is kept, too (--saved FILE)", where);
    const Cluster c = Cluster::load(where);
    c.require_one_machine("add-memory");
    return run_as(c.account, [&] { return add_to_cluster(c, bytes); });
  }
  if (fs::is_directory(where)) fail("{} is a directory: --saved goes with the file of a pool", where);
  const fs::path file = fs::absolute(where), copy = fs::absolute(saved);
  return run_as(account_of(copy), [&] { return add_to_file(file, copy, bytes); });
}

}  // namespace gclctl

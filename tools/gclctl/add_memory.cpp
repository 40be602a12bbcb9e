// gclctl add-memory: a memory node more, whether the primaries run or not.
#include "tools/gclctl/checks.hpp"
#include "tools/gclctl/cluster.hpp"
#include "tools/gclctl/failure.hpp"
#include "tools/gclctl/pool.hpp"
#include "tools/gclctl/process.hpp"
#include "tools/gclctl/verbs.hpp"

namespace gclctl {

int add_memory(const std::string& dir, const std::string& size) {
  Cluster c = Cluster::load(dir);
  const uint64_t bytes = parse_size(size);
  if (bytes < kMemoryNodeBytesMin) fail("a memory node has at least {} MB", kMemoryNodeBytesMin >> 20);
  Cluster part = c;
  part.pool_bytes = bytes;
  check_memory(part, 0, true);
  const int code = run_as(c.account, [&] {
    add_memory_node(c, bytes);
    return 0;
  });
  if (code != 0) return code;
  c.memory_nodes += 1;
  c.pool_bytes += bytes;
  c.save();
  fmt::print("the pool has {} memory nodes and {} MB\n", c.memory_nodes, c.pool_bytes >> 20);
  return 0;
}

}  // namespace gclctl

#include "coherence/pool/pool.hpp"

#include <cstdio>

#include "coherence/base/verify.hpp"

namespace coherence {

Pool::Pool(const PoolFiles& files) {
  snprintf(path_, sizeof path_, "%s", files.path);
  if (files.durable_path) snprintf(durable_path_, sizeof durable_path_, "%s", files.durable_path);
}

uint64_t Pool::pages() {
  uint64_t sum = 0;
  for (uint32_t k = 0; k < memory_nodes(); k++) sum += pages(MemoryNodeId{uint8_t(k)});
  return sum;
}

void Pool::must_find(MemoryNodeId n) noexcept {
  Problem problem;
  if (find_memory_node(n, &problem)) return;
  fprintf(stderr, "memory node %u of pool %s: %s\n", n.value, path_, problem.text);
  VERIFY(!"what a batch is for can be reached");
}

}  // namespace coherence

#include "coherence/transport/tcp/member/patience.hpp"

#include "coherence/region/pool_header.hpp"
#include "coherence/region/table_changes.hpp"

namespace coherence::tcp {

// tcp.patience-grows-under-nodes
uint32_t agree_on_patience(PoolKeeper& keeper, uint32_t wanted_ms) {
  PoolHeader& header = keeper.first_header();
  const bool has_nodes = TableChanges(keeper.table(), header.nodes_max).some_serve();
  const uint32_t ms = std::max(wanted_ms, has_nodes ? header.patience_ms.load(std::memory_order_relaxed) : 0);
  header.patience_ms.store(ms, std::memory_order_relaxed);
  return ms;
}

}  // namespace coherence::tcp

#include "tools/gclctl/look.hpp"

#include <charconv>
#include <cstring>

#include "bufmgr/inspect/page_text.hpp"
#include "tools/gclctl/cluster.hpp"
#include "tools/gclctl/failure.hpp"
#include "tools/gclctl/process.hpp"

namespace gclctl {
namespace {

using coherence::NodeId;
using coherence::PoolView;

int open_and_look(const fs::path& file, const std::function<int(PoolView&)>& body) {
  coherence::Problem problem;
  auto pool = PoolView::open(file.c_str(), &problem);
  if (!pool) fail("{} ({})", problem.text, coherence::errc_name(pool.error()));
  return body(**pool);
}

uint64_t number_in(const std::string& text, const std::string& name) {
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || text.empty())
    fail("\"{}\" is not a page: write its number, as 42, or 2:42 for page 42 of memory node 2", name);
  return number;
}

}  // namespace

int look_into(const std::string& where, const std::function<int(PoolView&)>& body) {
  std::error_code error;
  if (fs::is_regular_file(where, error)) {
    const fs::path file = fs::absolute(where);
    return run_as(account_of(file), [&] { return open_and_look(file, body); });
  }
  if (!fs::is_directory(where, error)) fail("{} is neither a cluster's directory nor the file of a pool", where);
  const Cluster c = Cluster::load(where);
  return run_as(c.account, [&] {
    std::error_code gone;
    if (fs::exists(c.pool(), gone)) return open_and_look(c.pool(), body);
    if (!fs::exists(c.saved_pool(), gone))
      fail("there is no pool {}, nor a saved one in {}", c.pool().string(), c.dir.string());
    fmt::print("(the pool is not in memory: this is the saved one)\n");
    return open_and_look(c.saved_pool(), body);
  });
}

coherence::PageId page_named(PoolView& pool, const std::string& name) {
  const size_t colon = name.find(':');
  const uint64_t memory_node = colon == std::string::npos ? 0 : number_in(name.substr(0, colon), name);
  const uint64_t number = number_in(colon == std::string::npos ? name : name.substr(colon + 1), name);
  const uint32_t memory_nodes = pool.header().memory_nodes.load();
  if (memory_node >= memory_nodes)
    fail("there is no page {}: the pool has memory nodes 0 to {}", name, memory_nodes - 1);
  const coherence::MemoryNodeId id{uint8_t(memory_node)};
  if (number >= pool.pages(id))
    fail("there is no page {}: memory node {} has {} pages", name, memory_node, pool.pages(id));
  return coherence::PageId::at(id, number);
}

std::vector<NodeId> nodes_named(const PoolView& pool, int node) {
  if (node >= int(pool.header().nodes_max))
    fail("there is no node {}: the pool has room for nodes 0 to {}", node, pool.header().nodes_max - 1);
  if (node >= 0) return {NodeId{uint8_t(node)}};
  std::vector<NodeId> there;
  for (uint32_t n = 0; n < pool.header().nodes_max; n++)
    if (pool.table().node[n].state.load() != coherence::MemberState::kAbsent) there.push_back({uint8_t(n)});
  return there;
}

std::unique_ptr<coherence::ArenaView> arena_of(const PoolView& pool, NodeId node) {
  coherence::Problem problem;
  auto arena = coherence::ArenaView::open(pool, node, &problem);
  if (arena) return arena.take();
  fmt::print("node {}   {}\n", node.value, problem.text);
  return nullptr;
}

std::string page_text(const std::byte* bytes) {
  bufmgr::PageHeader header;
  memcpy(&header, bytes, sizeof header);
  return text_of_words(header);
}

}  // namespace gclctl

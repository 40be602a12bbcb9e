#include "coherence/transport/tcp/member/tcp_pool.hpp"

#include <cstring>

#include "coherence/base/verify.hpp"
#include "coherence/region/memory_file.hpp"

namespace coherence::tcp {
namespace {

// As a process that has the file finds it there.
Status check(const HeaderRecord& record, const PoolFiles& files, const char* name, Problem* problem) {
  const auto header = std::make_unique<PoolHeader>();
  header->format_version = record.format_version;
  header->block_size = record.block_size;
  header->memory_nodes = record.memory_nodes;
  memcpy(header->compatibility, record.compatibility, sizeof header->compatibility);
  return check_header(*header, files.compatibility, name, problem);
}

}  // namespace

TcpPool& TcpPool::of(Pool& pool) noexcept {
  auto* const over_tcp = dynamic_cast<TcpPool*>(&pool);
  VERIFY(over_tcp != nullptr);
  return *over_tcp;
}

Result<std::unique_ptr<Pool>> TcpPool::open(const PoolFiles& files, Tool& tool, Mirror& mirror, Problem* problem) {
  const auto link = tool.link(problem);
  if (!link) return link.error();
  GCL_TRY((*link)->call({.call = Call::kHeader}, nullptr, problem));
  const HeaderRecord header = (*link)->header();
  const Table& table = *(*link)->table();
  for (uint32_t k = 1; k < table.head.memory_nodes; k++)
    if (table.memory_node[k].address[0] == '\0')
      return problem->set(Errc::kUnreached, "memory node %u has not come to the pool of memory node 0 at %s", k,
                          tool.name());
  (void)mirror.take(table);
  tool.close();  // tcp.tool-of-one-process
  tool.set_cluster(header.pool_id);
  GCL_TRY(check(header, files, tool.name(), problem));
  if (mirror.fence_word().load(std::memory_order_acquire) != 0)  // pairs with Mirror::fence()
    return problem->set(Errc::kFenced, "pool %s was not closed cleanly: %s", tool.name(),
                        mirror.members().fence_reason());
  std::unique_ptr<TcpPool> pool(new TcpPool(files, tool, mirror));
  Facts facts{.nodes_max = header.nodes_max, .pool_id = header.pool_id, .region = {}};
  for (int i = 0; i < kRegionsMax; i++)
    facts.region[i] = {PoolAddress::at(MemoryNodeId{0}, header.region[i].offset), header.region[i].bytes};
  pool->set_facts(facts);
  for (uint32_t n = 0; n < pool->memory_nodes(); n++) GCL_TRY(pool->find_memory_node({uint8_t(n)}, problem));
  return std::unique_ptr<Pool>(std::move(pool));
}

Status TcpPool::check_protocol(Problem* problem) const {
  if (mirror_.protocol() == kProtocolVersion || mirror_.members().empty()) return {};
  return problem->set(Errc::kIncompatible, "the nodes in pool %s have protocol version %u, this server has %u",
                      tool_.name(), mirror_.protocol(), kProtocolVersion);
}

Status TcpPool::find_memory_node(MemoryNodeId n, Problem* problem) {
  if (n.value >= memory_nodes())
    return problem->set(Errc::kNotFound, "the pool has no memory node %u", unsigned{n.value});
  set_places(n, mirror_.places(n));
  return {};
}

LatchWord TcpPool::peek_latch(PageId page) {
  ToolMemory memory(tool_);
  const auto word = memory.load(latch_address(page));
  return {word ? *word : ~uint64_t{0}};
}

// By links of its own, which do not outlive the question: many processes of a server may ask, once each.
Status TcpPool::figures(MemoryNodeId n, MemoryNodeFigures* figures, Interrupts& interrupts, Problem* problem) {
  char address[kListensAtBytes];
  mirror_.copy_memory_node_address(n, address);
  snprintf(figures->address, sizeof figures->address, "%s", n == MemoryNodeId{0} ? tool_.name() : address);
  tool_.close();
  tool_.set_interrupts(&interrupts);
  FiguresRecord record{};
  auto link = tool_.link_to(n, problem);
  const Status done = link ? (*link)->figures(&record, problem) : Status(link.error());
  tool_.close();
  tool_.set_interrupts(nullptr);
  figures->up_us = record.up_us;
  figures->links = record.links;
  figures->batches = record.batches;
  figures->operations = record.operations;
  figures->bytes_in = record.bytes_in;
  figures->bytes_out = record.bytes_out;
  figures->refused = record.refused;
  figures->user_us = record.user_us;
  figures->system_us = record.system_us;
  return done;
}

}  // namespace coherence::tcp

#include "tools/gclctl/served_pool.hpp"

#include <memory>
#include <string>

#include "coherence/base/member_state.hpp"
#include "coherence/transport/net/address.hpp"
#include "coherence/transport/net/credentials.hpp"
#include "coherence/transport/tcp/member/tool.hpp"
#include "tools/gclctl/memory_node.hpp"

namespace gclctl {
namespace {

using coherence::Problem;
namespace net = coherence::net;
namespace tcp = coherence::tcp;

// What is wrong is in the answer.
class NoLog final : public tcp::Log {
 public:
  void line(const char*) noexcept override {}
};

coherence::Status ask(const Cluster& c, tcp::Log& log, tcp::Table* table, Problem* problem) {
  const std::string at = memory_node_address(c), key = cluster_key(c);
  const auto address = net::Address::parse(at, problem);
  if (!address) return address.error();
  const auto endpoints = address->resolve(problem);
  if (!endpoints) return endpoints.error();
  auto credentials = net::Credentials::of_key_file(key.c_str(), problem);
  if (!credentials) return credentials.error();
  tcp::Tool tool({.name = at, .at = *endpoints}, credentials.take(), log);
  GCL_TRY(tool.call({.call = tcp::Call::kHeader}, nullptr, problem));
  *table = *tool.table();
  return {};
}

}  // namespace

PoolState ask_memory_node(const Cluster& c) {
  NoLog log;
  Problem problem;
  const auto table = std::make_unique<tcp::Table>();
  if (!ask(c, log, table.get(), &problem)) return {PoolState::Kind::kInUse, problem.text};
  if (table->head.fenced != 0) return {PoolState::Kind::kUnclean, table->head.fence_reason};
  bool some_died = false;
  for (uint32_t n = 0; n < table->head.nodes_max; n++) {
    const coherence::NodeInfo node{.state = coherence::MemberState(table->node[n].state)};
    if (node.serves()) return {PoolState::Kind::kInUse, ""};
    some_died |= node.dead();
  }
  return {some_died ? PoolState::Kind::kOrphaned : PoolState::Kind::kClean, ""};
}

bool memory_node_is_here(const Cluster& c, uint32_t number) {
  NoLog log;
  Problem problem;
  const auto table = std::make_unique<tcp::Table>();
  return ask(c, log, table.get(), &problem) && number < table->head.memory_nodes &&
         table->memory_node[number].address[0] != '\0';
}

}  // namespace gclctl

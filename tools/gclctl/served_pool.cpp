#include "tools/gclctl/served_pool.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <memory>
#include <string>
#include <vector>

#include "coherence/base/member_state.hpp"
#include "coherence/region/memory_file.hpp"
#include "coherence/transport/net/address.hpp"
#include "coherence/transport/net/credentials.hpp"
#include "coherence/transport/tcp/member/tool.hpp"
#include "tools/gclctl/memory_node.hpp"

namespace gclctl {
namespace {

using coherence::Problem;
namespace net = coherence::net;
namespace tcp = coherence::tcp;

constexpr uint64_t kAnswerNs = 5'000'000'000;

// What is wrong is in the answer.
class NoLog final : public tcp::Log {
 public:
  void line(const char*) noexcept override {}
};

coherence::Status ask(const Cluster& c, tcp::Log& log, tcp::Table* table, bool* clean, Problem* problem) {
  const std::string at = memory_node_address(c), key = cluster_key(c);
  const auto address = net::Address::parse(at, problem);
  if (!address) return address.error();
  const auto endpoints = address->resolve(problem);
  if (!endpoints) return endpoints.error();
  auto credentials = net::Credentials::of_key_file(key.c_str(), problem);
  if (!credentials) return credentials.error();
  tcp::Tool tool({.name = at, .at = *endpoints, .times = {.answer_ns = kAnswerNs}}, credentials.take(), log);
  GCL_TRY(tool.call({.call = tcp::Call::kHeader}, nullptr, problem));
  *table = *tool.table();
  auto link = tool.link(problem);
  if (!link) return link.error();
  *clean = (*link)->header().clean != 0;
  return {};
}

}  // namespace

bool ask_for_table(const Cluster& c, tcp::Table* table, std::string* why) {
  bool clean = false;
  return ask_for_table(c, table, &clean, why);
}

bool ask_for_table(const Cluster& c, tcp::Table* table, bool* clean, std::string* why) {
  NoLog log;
  Problem problem;
  const bool said{ask(c, log, table, clean, &problem)};
  if (!said) *why = problem.text;
  return said;
}

PoolState ask_memory_node(const Cluster& c) {
  std::string why;
  const auto table = std::make_unique<tcp::Table>();
  bool clean = false;
  if (!ask_for_table(c, table.get(), &clean, &why)) return {PoolState::Kind::kInUse, why};
  if (table->head.fenced != 0) return {PoolState::Kind::kUnclean, table->head.fence_reason};
  bool some_died = false;
  for (uint32_t n = 0; n < table->head.nodes_max; n++) {
    const coherence::NodeInfo node{.state = coherence::MemberState(table->node[n].state)};
    if (node.serves()) return {PoolState::Kind::kInUse, ""};
    some_died |= node.dead();
  }
  if (some_died) return {PoolState::Kind::kOrphaned, ""};
  if (!clean && c.on_hosts())
    return {PoolState::Kind::kUnsaved, "memory node 0 has not saved it, and its log says why"};
  return {PoolState::Kind::kClean, ""};
}

std::string why_unused(const Cluster& c, uint32_t number) {
  std::string ignored;
  const auto table = std::make_unique<tcp::Table>();
  if (!ask_for_table(c, table.get(), &ignored)) return "";
  const tcp::TableHead& head = table->head;
  if (number >= head.memory_nodes || number < head.memory_nodes - head.young) return "";
  std::vector<std::string> primaries;
  for (uint32_t n = 0; n < head.nodes_max; n++) {
    const coherence::NodeInfo node{.state = coherence::MemberState(table->node[n].state)};
    if (node.serves() && table->node[n].reaches <= number) primaries.push_back(fmt::format("primary {}", n));
  }
  if (primaries.empty()) primaries.emplace_back("a primary that starts");
  return fmt::format("{} {} not reach it at {}", fmt::join(primaries, ", "), primaries.size() == 1 ? "does" : "do",
                     table->memory_node[number].address);
}

namespace {

// On this machine.
bool somebody_listens(const char* at) {
  Problem ignored;
  const auto address = net::Address::parse(at, &ignored);
  if (!address) return false;
  const auto endpoints = address->resolve(&ignored);
  for (int i = 0; endpoints && i < endpoints->count; i++) {
    const net::Endpoint& one = endpoints->at[i];
    const coherence::File socket(::socket(one.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (connect(socket.fd(), one.raw(), one.bytes) == 0) return true;
  }
  return false;
}

}  // namespace

bool memory_node_is_here(const Cluster& c, uint32_t number) {
  std::string why;
  const auto table = std::make_unique<tcp::Table>();
  if (!ask_for_table(c, table.get(), &why) || number >= table->head.memory_nodes) return false;
  const char* const address = table->memory_node[number].address;
  // What memory node 0 knows may be of a daemon that has ended.  Across hosts this one may not reach itself there.
  return number == 0 || (address[0] != '\0' && (c.on_hosts() || somebody_listens(address)));
}

}  // namespace gclctl

#include "tools/gclctl/hosts.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>

#include "coherence/base/ids.hpp"
#include "coherence/base/member_state.hpp"
#include "coherence/region/memory_file.hpp"
#include "coherence/transport/net/credentials.hpp"
#include "tools/gclctl/failure.hpp"
#include "tools/gclctl/memory_node.hpp"
#include "tools/gclctl/served_pool.hpp"

namespace gclctl {
namespace {

using Clock = std::chrono::steady_clock;
using coherence::MemberState;
using coherence::tcp::Table;
constexpr auto kAllThereMax = std::chrono::seconds(120);
constexpr auto kCertainMax = std::chrono::seconds(20);  // beyond the patience of gcl_memnode
constexpr auto kAskAgain = std::chrono::milliseconds(200);

// Which memory node of the plan is not in the pool yet, in words; empty: all are.
std::string missing_memory_node(const Cluster& c) {
  std::string why;
  const auto table = std::make_unique<Table>();
  if (!ask_for_table(c, table.get(), &why)) return why;
  for (const PlannedMemoryNode& one : c.plan->memory_nodes)
    if (one.number != 0 &&
        (one.number >= table->head.memory_nodes || table->memory_node[one.number].address[0] == '\0'))
      return fmt::format("memory node {} of host {} has not come to the pool", one.number, one.host);
  return "";
}

std::string memory_node_in_words(const Table& table, const PlannedMemoryNode& one) {
  if (one.number >= table.head.memory_nodes) return "not in the pool yet";
  const auto& record = table.memory_node[one.number];
  if (one.number != 0 && record.address[0] == '\0') return "away";
  return fmt::format("up, {} MB of pages", record.pages * coherence::kPageSize >> 20);
}

const char* primary_in_words(MemberState state) {
  switch (state) {
    case MemberState::kLive:
      return "in the pool";
    case MemberState::kLeaving:
      return "leaves the pool";
    case MemberState::kDead:
    case MemberState::kSwept:
      return "DEAD; the others repair what it had";
    case MemberState::kAbsent:
      break;
  }
  return "not in the pool";
}

// The primaries that the pool has.
enum class Whose { kOurs, kOthers };
std::string in_pool(const Cluster& c, const Table& table, Whose whose) {
  std::string numbers;
  for (uint32_t n = 0; n < table.head.nodes_max; n++) {
    const PlannedPrimary* const one = c.plan->primary(int(n));
    const bool mine = one != nullptr && one->host == c.host;
    if (mine == (whose == Whose::kOurs) && coherence::NodeInfo{.state = MemberState(table.node[n].state)}.serves())
      numbers += fmt::format("{}{}", numbers.empty() ? "" : ", ", n);
  }
  return numbers;
}

}  // namespace

void provide_key(const Cluster& c) {
  const std::string file = cluster_key(c);
  if (c.has_first_memory_node() && !fs::exists(file)) return make_cluster_key(c);
  coherence::Problem problem;
  if (coherence::net::Credentials::of_key_file(file.c_str(), &problem)) return;
  if (!fs::exists(file))
    fail("{} is missing: it is made where memory node 0 is, on host {}, and is to be copied to all others", file,
         c.plan->memory_nodes[0].host);
  fail("{}", problem.text);
}

uint64_t planned_bytes(const Cluster& c) {
  uint64_t bytes = 0;
  for (const PlannedMemoryNode& one : c.plan->memory_nodes)
    if (one.host == c.host && !fs::exists(coherence::MemoryPath(c.pool().c_str(), one.number).text)) bytes += one.bytes;
  return bytes;
}

void wait_for_memory_nodes(const Cluster& c) {
  std::string said;
  for (const auto deadline = Clock::now() + kAllThereMax;; std::this_thread::sleep_for(kAskAgain)) {
    const std::string missing = missing_memory_node(c);
    if (missing.empty()) return;
    if (Clock::now() > deadline) fail("the primaries cannot join after {} s: {}", kAllThereMax.count(), missing);
    if (said.empty()) fmt::print("waiting: {}\n", missing);
    fflush(stdout);
    said = missing;
  }
}

std::string others_in_pool(const Cluster& c) {
  std::string why;
  const auto table = std::make_unique<Table>();
  if (!ask_for_table(c, table.get(), &why)) return "";  // without memory node 0 nobody works
  const std::string there = in_pool(c, *table, Whose::kOthers);
  return there.empty() ? "" : fmt::format("primaries {} of other hosts are in the pool", there);
}

// A death is certain when no memory node admits the dead one any more: those that are gone until then would be waited
// for (tcp.dead-when-all-refuse).
std::string still_in_pool(const Cluster& c) {
  const auto runs = [&](const PlannedMemoryNode& one) { return memory_node_process(c, one.number) != 0; };
  if (std::none_of(c.plan->memory_nodes.begin(), c.plan->memory_nodes.end(), runs)) return "";
  std::string why, here;
  const auto table = std::make_unique<Table>();
  const auto certain_max = c.patience() + kCertainMax;
  for (const auto deadline = Clock::now() + certain_max; Clock::now() < deadline;
       std::this_thread::sleep_for(kAskAgain)) {
    if (const std::string others = others_in_pool(c); !others.empty()) return others;
    if (!ask_for_table(c, table.get(), &why)) return "";
    here = in_pool(c, *table, Whose::kOurs);
    if (here.empty()) return "";
  }
  return fmt::format("that primaries {} are dead is not certain after {} s, and the log of memory node 0 says why",
                     here, certain_max.count());
}

void remove_saved_pool(const Cluster& c) {
  const std::string name = c.saved_pool().filename();
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(c.saved_pool().parent_path(), none)) {
    const std::string other = entry.path().filename();
    if (other == name || other.starts_with(name + ".")) fs::remove(entry.path());
  }
}

HostsInWords hosts_in_words(const Cluster& c) {
  HostsInWords words{.all_serve = true};
  std::string why;
  const auto table = std::make_unique<Table>();
  if (!ask_for_table(c, table.get(), &why))
    return {fmt::format("memory     host {}  {}\n", c.plan->memory_nodes[0].host, why)};
  for (const PlannedMemoryNode& one : c.plan->memory_nodes) {
    const std::string state = memory_node_in_words(*table, one);
    words.all_serve &= state.starts_with("up");
    words.text += fmt::format("memory {}   host {}  {}  {}\n", one.number, one.host, one.address, state);
  }
  for (const PlannedPrimary& one : c.plan->primaries) {
    const auto state =
        uint32_t(one.number) < table->head.nodes_max ? MemberState(table->node[one.number].state) : MemberState{};
    words.all_serve &= state == MemberState::kLive;
    words.text +=
        fmt::format("primary {}  host {}  {}  {}\n", one.number, one.host, one.address, primary_in_words(state));
  }
  if (table->head.fenced != 0) {
    words.text += fmt::format("the pool is FENCED: {}\n", table->head.fence_reason);
    words.all_serve = false;
  }
  return words;
}

}  // namespace gclctl

#include "tools/gclctl/deaths.hpp"

#include <fmt/format.h>

#include <charconv>

#include "coherence/base/os.hpp"
#include "coherence/inspect/pool_view.hpp"
#include "tools/gclctl/process.hpp"

namespace gclctl {
namespace {

using coherence::MemberState;
using coherence::NodeEntry;
using coherence::NodeInfo;
using coherence::NodeSet;
using coherence::PoolView;

NodeInfo info_of(const NodeEntry& e) { return {e.state.load(), e.incarnation.load(), e.pid.load()}; }

// Its postmaster is no more, and nobody has found it dead yet.  Of another pid namespace nothing can be told.
bool is_gone(const NodeEntry& e) {
  using Is = coherence::ProcessSight::Is;
  const uint64_t its_namespace = e.pid_namespace.load();
  if (its_namespace == 0 || its_namespace != coherence::pid_namespace()) return false;
  const coherence::ProcessSight seen = coherence::look_at_process(e.pid.load());
  return seen.is == Is::kGone || (seen.is == Is::kThere && e.pid_start.load() != 0 && e.pid_start.load() != seen.start);
}

// Every process of a server works in its data directory.
std::string processes_in(const fs::path& data) {
  std::string found;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator("/proc", error)) {
    const std::string name = entry.path().filename();
    int pid = 0;
    const auto [end, bad] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (bad != std::errc() || end != name.data() + name.size()) continue;
    if (works_in(pid, data).value_or(false)) found += fmt::format("{}{}", found.empty() ? "" : ", ", pid);
  }
  return found;
}

// The living that have not said `what` of it yet; empty: none lives (any_lives is false), or all have.
std::string awaited(const PoolView& pool, std::atomic<uint64_t> NodeEntry::*what, uint32_t dead, bool* any_lives) {
  std::string names;
  *any_lives = false;
  for (uint32_t n = 0; n < pool.header().nodes_max; n++) {
    const NodeEntry& e = pool.table().node[n];
    if (!info_of(e).serves() || is_gone(e)) continue;
    *any_lives = true;
    if (!NodeSet{(e.*what).load()}.has({uint8_t(dead)})) names += fmt::format("{}{}", names.empty() ? "" : ", ", n);
  }
  return names;
}

std::string waits_for(const PoolView& pool, uint32_t dead) {
  const NodeEntry& e = pool.table().node[dead];
  const bool swept = e.state.load() == MemberState::kSwept;
  bool any_lives = false;
  const std::string names = awaited(pool, swept ? &NodeEntry::drained : &NodeEntry::quiesced, dead, &any_lives);
  if (!pool.table().repairs_deaths()) return "which ends all access to the pool";
  if (!any_lives) return "and nobody is left to repair what it had: the next start does";
  if (swept) return fmt::format("and is repaired; until it may join again primary {} is waited for", names);
  if (pool.table().records_deaths.load() != 0 && !NodeSet{pool.table().recorded.load()}.has({uint8_t(dead)}))
    return "and its repair waits until it is in the pool's journal: the logs of the others say what hinders them";
  if (!NodeSet{pool.table().repairable.load()}.has({uint8_t(dead)}))
    return fmt::format("and its repair waits for primary {}", names);
  return "and what it had is being repaired";
}

}  // namespace

std::map<int, std::string> deaths_in(const Cluster& c) {
  std::map<int, std::string> deaths;
  coherence::Problem problem;
  const auto pool = PoolView::open(c.pool().c_str(), &problem);
  if (!pool) return deaths;
  const uint64_t now = coherence::monotonic_ns();
  for (uint32_t n = 1; n < (*pool)->header().nodes_max; n++) {
    const NodeEntry& e = (*pool)->table().node[n];
    const NodeInfo info = info_of(e);
    if (!info.dead() && !(info.serves() && is_gone(e))) continue;
    const uint64_t beat = e.heartbeat_ns.load();
    const std::string when =
        fmt::format("its worker was there {} s ago", now > beat ? (now - beat) / 1'000'000'000 : 0);
    if (info.dead()) {
      deaths[int(n)] = fmt::format("DEAD ({}), {}", when, waits_for(**pool, n));
      continue;
    }
    const std::string left = processes_in(c.data(int(n)));
    deaths[int(n)] = fmt::format("it has died ({}), {}", when,
                                 left.empty() ? "and nobody has found it dead yet"
                                              : "but that is not certain to the others while it has process " + left);
  }
  return deaths;
}

}  // namespace gclctl

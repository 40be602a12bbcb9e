// gclctl inspect pool, arena, ring: which nodes are in the pool, what its processes have under way, and its redo.
#include <fmt/format.h>

#include <deque>

#include "bufmgr/inspect/page_text.hpp"
#include "bufmgr/inspect/ring_view.hpp"
#include "bufmgr/pool_layout.hpp"
#include "coherence/base/os.hpp"
#include "coherence/inspect/flight_view.hpp"
#include "coherence/trace/line_text.hpp"
#include "tools/gclctl/cluster.hpp"
#include "tools/gclctl/failure.hpp"
#include "tools/gclctl/inspect.hpp"
#include "tools/gclctl/look.hpp"

namespace gclctl {
namespace {

using coherence::ArenaView;
using coherence::MemberState;
using coherence::NodeId;
using coherence::PoolView;
using coherence::ReplyWord;
using coherence::SessionSlot;
using coherence::SlotState;

const char* name_of(MemberState m) {
  static constexpr const char* kNames[] = {"absent", "live", "leaving", "DEAD", "DEAD, repaired"};
  return uint32_t(m) < std::size(kNames) ? kNames[uint32_t(m)] : "?";
}

const char* name_of(SlotState s) {
  static constexpr const char* kNames[] = {"free", "waiting", "abandoned", "finished"};
  return uint32_t(s) < std::size(kNames) ? kNames[uint32_t(s)] : "?";
}

const char* name_of_region(int region) {
  static constexpr const char* kNames[] = {"node table", "latch words", "pages", "redo rings", "transaction words",
                                           "status log", "DDL",         "waits", "samples",    "user's words"};
  static_assert(std::size(kNames) == size_t(bufmgr::Region::kCount));
  return kNames[region];
}

// Which nodes were asked, and what has come of it.
std::string replies_of(const coherence::RequestSlot& slot) {
  std::string text;
  const auto round = uint16_t(slot.serial.load());
  for (int n = 0; n < coherence::kNodesMax; n++) {
    const ReplyWord word{slot.reply[n].load()};
    if (word.is_reply() && word.round() == round)
      text += fmt::format("; node {}: {}", n, coherence::text(word.kind()));
    else if (word.is_open() || word.is_taken())
      text += fmt::format("; node {}: {}", n, word.is_open() ? "not taken yet" : "taken, no reply yet");
  }
  return text;
}

void print_session(uint32_t index, const SessionSlot& session, const coherence::FlightView* flights) {
  coherence::FlightView::Recording flight;
  const bool recorded = flights && flights->recording(index, &flight);
  fmt::print("  session  {}{}{}\n", index, recorded ? fmt::format(", process {}", flight.pid) : "",
             recorded ? fmt::format(", {} events", flight.written - flight.began) : "");
  for (int i = 0; i < coherence::kSlotsPerSession; i++) {
    const coherence::RequestSlot& slot = session.slot[i];
    if (slot.state.load() == SlotState::kFree) continue;
    fmt::print("    slot {}: {}, line {}, page {}, {} (serial {}), {} refusals{}\n", i, name_of(slot.state.load()),
               slot.line.load(), text_of_words(coherence::PageId{slot.page.load()}), coherence::text(slot.kind.load()),
               slot.serial.load(), slot.refusals.load(), replies_of(slot));
  }
}

void print_sums(const ArenaView& arena) {
  uint64_t pages = 0, owned = 0, shared = 0, exclusive = 0, operations = 0, parked = 0, holds = 0, spins = 0;
  arena.for_lines([&](uint32_t, const coherence::Line::Sight& line) {
    pages += line.page.valid();
    owned += line.latch.msi() == coherence::MsiState::kModified;
    shared += line.latch.shared();
    exclusive += line.latch.exclusive();
    operations += line.state.op != coherence::LineOp::kIdle;
    parked += line.state.parked_count;
    holds += line.state.holds_shared + line.state.holds_exclusive;
    spins += line.spin != 0;
    return true;
  });
  fmt::print(
      "  lines    {} of {} have pages, {} of them owned; {} shared and {} exclusive latches, {} operations, {} parked "
      "requests, {} holds, {} spinlocks taken\n",
      pages, arena.layout().frames, owned, shared, exclusive, operations, parked, holds, spins);
}

void print_arena(PoolView& pool, NodeId node) {
  const auto arena = arena_of(pool, node);
  if (!arena) return;
  const coherence::ArenaHeader& h = arena->header();
  fmt::print("node {}   {} MB, {}\n", node.value, megabytes(h.layout.bytes), arena->path());
  fmt::print("  worker   {}{}{}\n", h.sleeping.load() ? "sleeps" : "awake",
             h.parked_any.load() ? ", requests are parked" : "",
             h.abandoned_any.load() ? ", operations are abandoned" : "");
  if (const uint64_t peers = h.inbox_peers.load(); peers != 0)
    fmt::print("  inbox    not taken yet: requests of nodes {}\n", text_of_words(coherence::NodeSet{peers}));
  print_sums(*arena);
  for (int w = 0; w < coherence::kInboxWords; w++)
    for (uint64_t bits = h.abandoned[w].load(); bits; bits &= bits - 1) {
      const int slot = w * 64 + std::countr_zero(bits);
      fmt::print("  abandoned operation of session {}, slot {}\n", slot / coherence::kSlotsPerSession,
                 slot % coherence::kSlotsPerSession);
    }
  coherence::Problem problem;
  const auto flights = coherence::FlightView::open(pool, node, &problem);
  for (uint32_t i = 0; i < h.layout.sessions_max; i++) {
    SessionSlot session;
    if (!arena->session(i, &session)) break;
    bool any = session.in_use.load() != 0;
    for (const auto& slot : session.slot) any |= slot.state.load() != SlotState::kFree;
    if (any) print_session(i, session, flights ? flights->get() : nullptr);
  }
}

}  // namespace

int inspect_pool_header(PoolView& pool) {
  const coherence::PoolHeader& h = pool.header();
  const coherence::NodeTable& table = pool.table();
  fmt::print("pool     {:016x}, format {}, {}, saved {} times\n", h.pool_id, h.format_version,
             h.state.load() == coherence::PoolState::kClean ? "clean" : "in use, or died in", h.saves);
  if (table.fence.load() != 0) {
    const size_t bytes = strnlen(table.fence_reason, sizeof table.fence_reason);
    fmt::print("FENCED   {}\n", std::string(table.fence_reason, bytes));
  }
  for (int i = 0; i < int(bufmgr::Region::kCount); i++)
    fmt::print("region   {:<18} {:>12} bytes at {}\n", name_of_region(i), h.region[i].bytes, h.region[i].offset);
  for (uint32_t k = 0; k < h.memory_nodes.load(); k++)
    fmt::print("memory node {}: {} MB, {} pages\n", k, megabytes(h.memory_bytes[k]), pool.pages({uint8_t(k)}));
  const uint64_t now = coherence::monotonic_ns();
  for (const NodeId n : nodes_named(pool, -1)) {
    const coherence::NodeEntry& e = table.node[n.value];
    const uint64_t beat = e.heartbeat_ns.load();
    fmt::print("node {}   {}, process {}, incarnation {}, its worker was there {} ms ago\n", n.value,
               name_of(e.state.load()), e.pid.load(), e.incarnation.load(), now > beat ? (now - beat) / 1000000 : 0);
  }
  return 0;
}

int inspect_arena(PoolView& pool, int node) {
  const auto nodes = nodes_named(pool, node);
  if (nodes.empty()) fmt::print("no node is in the pool\n");
  for (const NodeId n : nodes) print_arena(pool, n);
  return 0;
}

int inspect_ring(PoolView& pool, int node, int last) {
  for (int n = 0; n < int(pool.header().nodes_max); n++) {
    if (node >= 0 && n != node) continue;
    const NodeId id{uint8_t(n)};
    coherence::Problem problem;
    const auto arena = coherence::ArenaView::open(pool, id, &problem);
    const auto ring = bufmgr::RingView::of(pool, id, arena ? arena->get() : nullptr);
    if (!ring) {
      if (node >= 0) fmt::print("node {}   has no redo ring\n", n);
      continue;
    }
    fmt::print("node {}   ring of {} bytes, tail {}, of incarnation {}\n", n, ring->data_bytes, ring->tail,
               ring->incarnation);
    if (ring->shared)
      fmt::print("  arena    head {}, tail {}, {} bytes in use, {} may be reserved; the log is written up to {:X}{}\n",
                 ring->shared->head, ring->shared->tail, ring->shared->head - ring->shared->tail, ring->shared->budget,
                 ring->shared->last_lsn, ring->shared->emptying ? "; somebody empties it" : "");
    uint64_t records = 0;
    std::deque<std::string> newest;
    const uint64_t end = bufmgr::visit_ring(pool, id, [&](std::span<const std::byte> record) {
      ++records;
      coherence::Text text;
      bufmgr::add_record(text, record);
      newest.push_back(text.c_str());
      if (newest.size() > size_t(last)) newest.pop_front();
    });
    fmt::print("  records  {}, the last one ends at {}\n", records, end);
    for (const std::string& record : newest) fmt::print("  record   {}\n", record);
  }
  if (node >= int(pool.header().nodes_max)) (void)nodes_named(pool, node);  // says so
  return 0;
}

}  // namespace gclctl

#include "extension/engine/ddl/ddl_channel.hpp"

namespace engine {

using coherence::Batch;
using coherence::Errc;
using coherence::NodeId;
using coherence::PageId;
using coherence::Result;

int DdlChannel::free_slots() {
  int free = 0;
  for (int i = 0; i < slots(); ++i) free += !slot(i).owner().held();
  return free;
}

int DdlChannel::free_slot(std::string_view database, int reserved) {
  int fallback = -1;
  bool fallback_is_quiet = false;
  if (reserved > 0 && free_slots() <= reserved) return -1;
  for (int i = 0; i < slots(); ++i) {
    DdlSlot one = slot(i);
    if (one.owner().held()) continue;
    DdlHeader header;
    const uint64_t newest = one.sequence();
    const bool fresh = newest == 0;
    if (!fresh && !one.read(newest, &header)) continue;
    const bool quiet = one.all_have_dealt();
    if (quiet && !fresh && database == header.database) return i;
    if (fallback >= 0 && (fallback_is_quiet || !quiet)) continue;
    fallback = i;
    fallback_is_quiet = quiet;
  }
  return fallback;
}

void DdlChannel::newest_messages(uint64_t* sequences, uint64_t* acknowledged) {
  static_assert(2 * kDdlSlotsMax <= coherence::kBatchOpsMax);
  Batch batch(region_.at(0).node());
  for (int i = 0; i < slots(); ++i) {
    batch.load(region_.slot_at(i) + kDdlSlotSequence);
    batch.load(region_.slot_at(i) + (kDdlSlotCells + region_.self().value * kDdlCellBytes + offsetof(DdlCell, ack)));
  }
  const bool known = region_.run(batch);
  for (int i = 0; i < slots(); ++i) {
    if (!known) batch.op(2 * i).old = batch.op(2 * i + 1).old = 0;
    sequences[i] = DdlNewest{batch.op(2 * i).old}.number();
    acknowledged[i] = batch.op(2 * i + 1).old >> 1;
  }
}

void DdlChannel::join(uint64_t incarnation) {
  for (int i = 0; i < slots(); ++i) slot(i).acknowledge_all();
  rejoin(incarnation);
}

void DdlChannel::rejoin(uint64_t incarnation) { region_.store(region_.member_at(region_.self()), incarnation); }

void DdlChannel::leave() { region_.store(region_.member_at(region_.self()), 0); }

// The newest words (ddl_log.joiner-takes-locks).
DdlMembers DdlChannel::members() {
  DdlMembers all{};
  Batch batch(region_.at(0).node());
  for (uint32_t n = 0; n < region_.nodes_max(); ++n) batch.faa(region_.member_at(NodeId{uint8_t(n)}), 0);
  const bool known = region_.run(batch);
  for (uint32_t n = 0; n < region_.nodes_max(); ++n) {
    all.incarnation[n] = known ? batch.op(int(n)).old : ~uint64_t{0};
    if (all.incarnation[n] && n != region_.self().value) all.nodes = all.nodes.with(NodeId{uint8_t(n)});
  }
  return all;
}

coherence::NodeSet DdlChannel::everybody() {
  const DdlMembers all = members();
  return all.incarnation[region_.self().value] != 0 ? all.nodes.with(region_.self()) : all.nodes;
}

bool DdlChannel::end_membership(NodeId node) {
  const uint64_t before = membership(node);
  if (before == 0 || region_.lost()) return false;
  Batch batch(region_.at(0).node());
  const int i = batch.cas(region_.member_at(node), before, 0);
  return region_.run(batch) && batch.cas_succeeded(i);
}

uint64_t DdlChannel::membership(NodeId node) {
  const uint64_t incarnation = region_.load(region_.member_at(node));
  return region_.lost() ? ~uint64_t{0} : incarnation;
}

uint64_t DdlChannel::life(NodeId node) { return region_.load(region_.at(kDdlLives + node.value * 8u)); }

void DdlChannel::set_life(NodeId node, uint64_t life) { region_.store(region_.at(kDdlLives + node.value * 8u), life); }

DdlApplied DdlChannel::applied(NodeId node) { return {region_.load(region_.at(kDdlApplied + node.value * 8u))}; }

void DdlChannel::set_applied(NodeId node, DdlApplied applied) {
  region_.store(region_.at(kDdlApplied + node.value * 8u), applied.raw);
}

DdlApplied DdlChannel::applied_by_all(NodeId* behind) {
  Batch batch(region_.at(0).node());
  for (uint32_t n = 0; n < region_.nodes_max(); ++n) batch.load(region_.at(kDdlApplied + n * 8u));
  DdlApplied least;
  if (!region_.run(batch)) return least;
  for (uint32_t n = 0; n < region_.nodes_max(); ++n) {
    const DdlApplied one{batch.op(int(n)).old};
    if (!one.known() || (least.known() && least.raw <= one.raw)) continue;
    least = one;
    *behind = NodeId{uint8_t(n)};
  }
  return least;
}

uint64_t DdlChannel::log_entries() { return region_.load(region_.at(kDdlLogEntries)); }

void DdlChannel::set_log_entries(uint64_t count) {
  uint64_t seen = log_entries();
  while (seen < count) {
    Batch batch(region_.at(0).node());
    const int i = batch.cas(region_.at(kDdlLogEntries), seen, count);
    if (!region_.run(batch) || batch.cas_succeeded(i)) return;
    seen = batch.op(i).old;
  }
}

Result<PageId> DdlChannel::log_root() {
  const uint64_t raw = region_.load(region_.at(kDdlLogRoot));
  if (region_.lost()) return Errc::kFenced;
  return raw ? PageId{raw - 1} : PageId{};
}

bool DdlChannel::set_log_root(PageId root) {
  Batch batch(region_.at(0).node());
  const int i = batch.cas(region_.at(kDdlLogRoot), 0, root.raw + 1);
  return region_.run(batch) && batch.cas_succeeded(i);
}

}  // namespace engine

#include "recovery/restart_journal.hpp"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>

#include "coherence/base/byte_reader.hpp"
#include "coherence/region/pool_outline.hpp"

namespace recovery {

using coherence::Errc;
using coherence::NodeId;
using coherence::Pool;
using coherence::PoolJournal;
using coherence::Problem;
using coherence::Result;
using coherence::Status;

namespace {

enum Kind : uint32_t {
  kJoin = 16,
  kDeath = 17,
  kDecision = 18,
  kLife = 19,
  kDeathWithoutRing = 20
};  // beside coherence's (PoolJournal)

constexpr uint64_t kNowhere = ~uint64_t{0};  // of a log

// Heads of entries.
struct JoinEntry {
  uint64_t node, incarnation, first_sequence, log_position;
};
struct DeathEntry {
  uint64_t node, incarnation, first_sequence, hole;
  uint64_t verdicts;  // how many follow, sequence * 2 + committed; then the ring's records
};
struct LifeEntry {
  uint64_t node, number;
};
struct DecisionEntry {
  uint64_t txn, committed;
};

Status append(Pool& pool, Kind kind, std::span<const std::byte> bytes, Patience patience, Problem* problem) {
  auto journal = PoolJournal::open(pool, patience, problem);
  if (!journal) return journal.error();
  return (*journal)->append(kind, bytes, problem);
}

template <class Entry>
std::span<const std::byte> bytes_of(const Entry& entry) {
  static_assert(std::has_unique_object_representations_v<Entry>);
  return std::as_bytes(std::span(&entry, 1));
}

}  // namespace

Status note_join(Pool& pool, const Join& join, Patience patience, Problem* problem) {
  const JoinEntry entry{join.node.value, join.incarnation, join.first_sequence, join.log_position};
  return append(pool, kJoin, bytes_of(entry), patience, problem);
}

Status note_death(Pool& pool, NodeId node, uint64_t incarnation, const RingIndex& ring,
                  std::span<const Verdict> verdicts, Patience patience, Problem* problem) {
  const DeathEntry entry{node.value, incarnation, ring.first_sequence(), ring.hole(), verdicts.size()};
  std::vector<uint64_t> packed;
  packed.reserve(verdicts.size());
  for (const Verdict& verdict : verdicts) packed.push_back(verdict.sequence * 2 + verdict.committed);
  std::vector<std::byte> all;
  all.reserve(sizeof entry + packed.size() * sizeof packed[0] + ring.framed().size());
  for (const auto part : {bytes_of(entry), std::as_bytes(std::span(packed)), ring.framed()})
    all.insert(all.end(), part.begin(), part.end());
  return append(pool, kDeath, all, patience, problem);
}

Status note_decision(Pool& pool, const Decision& decision, Patience patience, Problem* problem) {
  const DecisionEntry entry{decision.txn, decision.committed};
  return append(pool, kDecision, bytes_of(entry), patience, problem);
}

Status note_life(Pool& pool, const Life& life, Patience patience, Problem* problem) {
  const LifeEntry entry{life.node.value, life.number};
  return append(pool, kLife, bytes_of(entry), patience, problem);
}

Status drop_rings(const char* durable_path, uint64_t pool_id, uint64_t saves,
                  const std::function<bool(const Death&)>& in_checkpoint, Problem* problem) {
  const auto keep = [&](uint32_t* kind, std::vector<std::byte>* bytes) {
    History one;
    if (*kind != kDeath || !one.add(*kind, *bytes)) return;
    for (const NodeHistory& node : one.node)
      for (const Death& death : node.deaths()) {
        if (!in_checkpoint(death)) continue;
        *kind = kDeathWithoutRing;
        bytes->resize(bytes->size() - death.framed.size());
      }
  };
  return PoolJournal::rewrite(durable_path, pool_id, saves, keep, problem);
}

Status put_back_rings(const char* durable_path, uint64_t pool_id, uint64_t saves,
                      const std::function<const Death*(const Death&)>& with_ring, Problem* problem) {
  const auto keep = [&](uint32_t* kind, std::vector<std::byte>* bytes) {
    History one;
    if (*kind != kDeathWithoutRing || !one.add(*kind, *bytes)) return;
    for (const NodeHistory& node : one.node)
      for (const Death& death : node.deaths()) {
        const Death* const whole = with_ring(death);
        if (whole == nullptr || whole->framed.size() != death.ring_bytes()) continue;
        *kind = kDeath;
        bytes->insert(bytes->end(), whole->framed.begin(), whole->framed.end());
      }
  };
  return PoolJournal::rewrite(durable_path, pool_id, saves, keep, problem);
}

// Behind the durable copy, not behind what the pool's own header says: the last save may have failed.
Result<bool> has_joined(Pool& pool, NodeId node, Problem* problem) {
  const auto saved = outline_pool(pool.durable_path(), problem);
  if (!saved) return saved.error();
  const auto history = read_history(pool.durable_path(), pool.pool_id(), saved->saves, problem);
  if (!history) return history.error();
  return history->node[node.value].joined();
}

bool NodeHistory::joined(uint64_t after, uint64_t upto) const { return log_position(after, upto) != kNowhere; }

uint64_t NodeHistory::log_position(uint64_t after, uint64_t upto) const {
  uint64_t least = kNowhere;
  for (const Join& join : joins_)
    if (after < join.incarnation && join.incarnation <= upto) least = std::min(least, join.log_position);
  return least;
}

// The incarnation that wrote it is the last one that began at or before it (log.sequence-is-position).
bool NodeHistory::counts(uint64_t sequence) const {
  const Join* by = nullptr;
  for (const Join& join : joins_)
    if (join.first_sequence <= sequence && (by == nullptr || join.first_sequence >= by->first_sequence)) by = &join;
  if (by == nullptr) return false;
  for (const Death& death : deaths_)
    if (death.incarnation == by->incarnation && sequence >= death.hole) return false;
  return true;
}

uint64_t NodeHistory::newest_incarnation() const {
  uint64_t newest = 0;
  for (const Join& join : joins_) newest = std::max(newest, join.incarnation);
  for (const Death& death : deaths_) newest = std::max(newest, death.incarnation);
  return newest;
}

uint64_t NodeHistory::newest_joined(uint64_t upto) const {
  uint64_t newest = 0;
  for (const Join& join : joins_)
    if (join.incarnation <= upto) newest = std::max(newest, join.incarnation);
  return newest;
}

bool History::empty() const {
  return std::none_of(std::begin(node), std::end(node), [](const NodeHistory& one) { return one.joined(); });
}

Status History::add(uint32_t kind, std::span<const std::byte> bytes) {
  coherence::ByteReader front(bytes);
  if (kind == kJoin) {
    JoinEntry entry;
    if (!front.take(&entry, sizeof entry) || entry.node >= coherence::kNodesMax) return Errc::kCorrupt;
    const NodeId id{uint8_t(entry.node)};
    node[id.value].joins_.push_back({id, entry.incarnation, entry.first_sequence, entry.log_position});
    return {};
  }
  if (kind == kDeath || kind == kDeathWithoutRing) {
    DeathEntry entry;
    if (!front.take(&entry, sizeof entry) || entry.node >= coherence::kNodesMax) return Errc::kCorrupt;
    const NodeId id{uint8_t(entry.node)};
    Death death{id, entry.incarnation, entry.first_sequence, entry.hole, {}, {}};
    for (uint64_t i = 0, packed; i < entry.verdicts; ++i) {
      if (!front.take(&packed, sizeof packed)) return Errc::kCorrupt;
      death.verdicts.push_back({packed / 2, packed % 2 != 0});
    }
    if (front.left().size() != (kind == kDeath ? death.ring_bytes() : 0)) return Errc::kCorrupt;
    death.framed.assign(front.left().begin(), front.left().end());
    node[id.value].deaths_.push_back(std::move(death));
    return {};
  }
  if (kind == kDecision) {
    DecisionEntry entry;
    if (!front.take(&entry, sizeof entry)) return Errc::kCorrupt;
    const auto before = std::ranges::find(decisions, entry.txn, &Decision::txn);
    if (before == decisions.end())
      decisions.push_back({entry.txn, entry.committed != 0});
    else
      before->committed = entry.committed != 0;
    return {};
  }
  if (kind == kLife) {
    LifeEntry entry;
    if (!front.take(&entry, sizeof entry) || entry.node >= coherence::kNodesMax) return Errc::kCorrupt;
    life[entry.node] = entry.number;
    return {};
  }
  return kind == PoolJournal::kMemoryNode ? Status() : Status(Errc::kIncompatible);
}

Result<History> read_history(const char* durable_path, uint64_t pool_id, uint64_t saves, Problem* problem) {
  History history;
  const auto add = [&](uint32_t kind, std::span<const std::byte> bytes) -> Status {
    const Status added = history.add(kind, bytes);
    if (added.error() == Errc::kIncompatible)
      return problem->set(added.error(),
                          "the journal of %s has an entry of kind %u, which is not read here; a later version of gcl "
                          "wrote it: use that one",
                          durable_path, kind);
    if (!added) problem->set(added.error(), "the journal of %s cannot be read", durable_path);
    return added;
  };
  GCL_TRY(PoolJournal::visit(durable_path, pool_id, saves, add, problem));
  return history;
}

}  // namespace recovery

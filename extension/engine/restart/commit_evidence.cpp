#include "extension/engine/restart/commit_evidence.hpp"

#include <algorithm>
#include <utility>

#include "bufmgr/log/packing.hpp"
#include "extension/engine/txn/txn_notes.hpp"

namespace engine {

coherence::Status CommitEvidence::note(std::span<const std::byte> bytes, uint64_t beside) {
  const auto read = read_note(bytes, beside);
  if (!read) return read.error();
  greatest_ = std::max(greatest_, read->reserved);
  if (read->sequences.empty()) return {};
  greatest_ = std::max(greatest_, read->sequences.back());
  if (read->host_xid == 0) return {};  // no record of the host's can say that it committed
  Ids& ids = pending_[read->host_xid];
  ids.insert(ids.end(), read->sequences.begin(), read->sequences.end());
  return {};
}

CommitEvidence::Ids CommitEvidence::take_pending(uint64_t xid) {
  const auto found = pending_.find(xid);
  if (found == pending_.end()) return {};
  Ids ids = std::move(found->second);
  pending_.erase(found);
  return ids;
}

void CommitEvidence::host_committed(uint64_t xid) {
  if (Ids ids = take_pending(xid); !ids.empty()) end(std::move(ids), true);
}

// Its host tells everybody that it was rolled back: no decision to commit it comes any more.
void CommitEvidence::host_aborted(uint64_t xid) { take_pending(xid); }

void CommitEvidence::host_restarted() {
  for (auto& [xid, ids] : std::exchange(pending_, {})) end(std::move(ids), false);
}

// restart.verdict-beats-log, of what was said before.
void CommitEvidence::end(Ids ids, bool commits) {
  const uint64_t first = ids.front();
  if (rolled_back_.contains(first)) commits = false;
  if (decided_.contains(first)) commits = true;
  if (!commits) {
    undone_[first] = std::move(ids);
    return;
  }
  for (const uint64_t sequence : ids) set(sequence, true);
  if (ids.size() > 1) remember_group(ids);
}

void CommitEvidence::roll_back(uint64_t sequence) {
  rolled_back_.insert(sequence);
  if (!decided_.contains(sequence)) set_all(sequence, false);
}

void CommitEvidence::commit(uint64_t sequence) {
  decided_.insert(sequence);
  set_all(sequence, true);
}

void CommitEvidence::set_all(uint64_t first, bool committed) {
  set(first, committed);
  for (const uint64_t sequence : find_group(first)) set(sequence, committed);
}

void CommitEvidence::set(uint64_t sequence, bool committed) {
  auto& block = committed_[sequence / kBlockIds];
  if (!block) block = std::make_unique<Block>();
  uint64_t& word = block->word[sequence % kBlockIds / 64];
  const uint64_t bit = uint64_t{1} << sequence % 64;
  word = committed ? word | bit : word & ~bit;
}

bool CommitEvidence::committed(uint64_t sequence) const {
  const auto block = committed_.find(sequence / kBlockIds);
  return block != committed_.end() && (block->second->word[sequence % kBlockIds / 64] >> sequence % 64 & 1) != 0;
}

void CommitEvidence::remember_group(const Ids& ids) {
  const auto put = [this](uint64_t number) {
    std::byte packed[bufmgr::kVarintMax];
    groups_.insert(groups_.end(), packed, bufmgr::put_varint(packed, number));
  };
  put(ids.size());
  uint64_t before = 0;
  for (const uint64_t sequence : ids) put(sequence - std::exchange(before, sequence));
}

// Verdicts are few: each looks at all.
CommitEvidence::Ids CommitEvidence::find_group(uint64_t first) const {
  if (const auto undone = undone_.find(first); undone != undone_.end()) return undone->second;
  for (const auto& [xid, ids] : pending_)
    if (ids.front() == first) return ids;
  const std::byte* at = groups_.data();
  const std::byte* const end = at + groups_.size();
  while (at != end) {
    uint64_t count, sequence = 0, distance;
    at = bufmgr::get_varint(at, end, &count);
    Ids ids;
    for (uint64_t i = 0; i < count; ++i) {
      at = bufmgr::get_varint(at, end, &distance);
      sequence += distance;
      if (i == 0 ? sequence == first : !ids.empty()) ids.push_back(sequence);
    }
    if (!ids.empty()) return ids;
  }
  return {};
}

}  // namespace engine

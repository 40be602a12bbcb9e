#include "extension/engine/restart/commit_evidence.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "bufmgr/log/packing.hpp"
#include "extension/engine/txn/txn_notes.hpp"

namespace engine {

using coherence::ByteReader;

namespace {

void put_number(std::vector<std::byte>* to, uint64_t number) {
  std::byte packed[bufmgr::kVarintMax];
  to->insert(to->end(), packed, bufmgr::put_varint(packed, number));
}

// How many, the first, distances.
void put_ids(std::vector<std::byte>* to, const std::vector<uint64_t>& ids) {
  put_number(to, ids.size());
  uint64_t before = 0;
  for (const uint64_t sequence : ids) put_number(to, sequence - std::exchange(before, sequence));
}

// The other way round; false: there is none.
bool take_number(ByteReader* from, uint64_t* to) {
  const std::byte* const begin = from->left().data();
  const std::byte* const behind = bufmgr::get_varint(begin, begin + from->left().size(), to);
  if (behind != nullptr) from->skip(size_t(behind - begin));
  return behind != nullptr;
}

bool take_ids(ByteReader* from, std::vector<uint64_t>* to) {
  uint64_t count, distance, sequence = 0;
  if (!take_number(from, &count) || count > from->left().size()) return false;  // each has a byte at least
  to->clear();
  for (; count > 0; --count) {
    if (!take_number(from, &distance)) return false;
    to->push_back(sequence += distance);
  }
  return true;
}

}  // namespace

coherence::Status CommitEvidence::note(std::span<const std::byte> bytes, uint64_t beside) {
  const auto read = read_note(bytes, beside);
  if (!read) return read.error();
  greatest_ = std::max(greatest_, read->reserved);
  if (read->sequences.empty()) return {};
  greatest_ = std::max(greatest_, read->sequences.back());
  if (read->host_xid == 0) return {};  // no record of the host's can say that it committed
  Ids& ids = pending_[read->host_xid];
  ids.insert(ids.end(), read->sequences.begin(), read->sequences.end());
  if (decided_.contains(ids.front()))  // its log may have nothing more to say
    for (const uint64_t sequence : read->sequences) set(sequence, true);
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

// restart.deaths-tell-ids
void CommitEvidence::roll_back(uint64_t sequence) {
  greatest_ = std::max(greatest_, sequence);
  rolled_back_.insert(sequence);
  if (!decided_.contains(sequence)) set_all(sequence, false);
}

void CommitEvidence::commit(uint64_t sequence) {
  greatest_ = std::max(greatest_, sequence);
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

void CommitEvidence::remember_group(const Ids& ids) { put_ids(&groups_, ids); }

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

// --- written down ----------------------------------------------------------------------------------------------------
//   the highest number | pending: how many, each its xid and ids | not committed: how many, each its ids
//   | groups: how many bytes, and these | blocks: how many, each its number, 0 and the ids that have not committed,
//   or 1 and its bits

void CommitEvidence::put_block(std::vector<std::byte>* to, const Block& block) {
  Ids others;
  for (uint64_t id = 0; id < kBlockIds && others.size() <= kOthersMax; ++id)
    if ((block.word[id / 64] >> id % 64 & 1) == 0) others.push_back(id);
  put_number(to, others.size() > kOthersMax);
  if (others.size() <= kOthersMax) return put_ids(to, others);
  const auto bits = std::as_bytes(std::span(block.word));
  to->insert(to->end(), bits.begin(), bits.end());
}

std::vector<std::byte> CommitEvidence::written_down() const {
  std::vector<std::byte> bytes;
  put_number(&bytes, greatest_);
  put_number(&bytes, pending_.size());
  for (const auto& [xid, ids] : pending_) {
    put_number(&bytes, xid);
    put_ids(&bytes, ids);
  }
  put_number(&bytes, undone_.size());
  for (const auto& [first, ids] : undone_) put_ids(&bytes, ids);
  put_number(&bytes, groups_.size());
  bytes.insert(bytes.end(), groups_.begin(), groups_.end());
  put_number(&bytes, committed_.size());
  for (const auto& [number, block] : committed_) {
    put_number(&bytes, number);
    put_block(&bytes, *block);
  }
  return bytes;
}

bool CommitEvidence::take_block(ByteReader* front) {
  uint64_t number, has_bits;
  if (!take_number(front, &number) || !take_number(front, &has_bits)) return false;
  auto block = std::make_unique<Block>();
  if (has_bits != 0) {
    if (!front->take(block->word, sizeof block->word)) return false;
  } else {
    Ids others;
    if (!take_ids(front, &others)) return false;
    std::fill(std::begin(block->word), std::end(block->word), ~uint64_t{0});
    for (const uint64_t id : others) {
      if (id >= kBlockIds) return false;
      block->word[id / 64] &= ~(uint64_t{1} << id % 64);
    }
  }
  return committed_.emplace(number, std::move(block)).second;
}

bool CommitEvidence::take(ByteReader* front) {
  uint64_t count, xid;
  if (!take_number(front, &greatest_) || !take_number(front, &count)) return false;
  for (; count > 0; --count)
    if (!take_number(front, &xid) || !take_ids(front, &pending_[xid])) return false;
  if (!take_number(front, &count)) return false;
  for (Ids ids; count > 0; --count) {
    if (!take_ids(front, &ids) || ids.empty()) return false;
    undone_[ids.front()] = ids;
  }
  if (!take_number(front, &count) || count > front->left().size()) return false;
  groups_.resize(count);
  if (!front->take(groups_.data(), count) || !take_number(front, &count)) return false;
  for (; count > 0; --count)
    if (!take_block(front)) return false;
  return front->left().empty();
}

coherence::Result<CommitEvidence> CommitEvidence::read(std::span<const std::byte> bytes) {
  CommitEvidence evidence;
  ByteReader front(bytes);
  if (!evidence.take(&front)) return coherence::Errc::kCorrupt;
  return evidence;
}

}  // namespace engine

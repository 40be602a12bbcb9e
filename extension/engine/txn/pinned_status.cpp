// Ids that run for longer than the ring takes to go round keep their places in it (txn.running-id-pinned): the
// low-water mark passes them, their page says that the word is pinned, and the id that would reuse the place is
// skipped.
//
//   overflow:  page says kPinned  ->  listed in `pinned`  ->  low-water mark passes it
//   unpin:     page says the final word  ->  place says kSkipped  ->  no longer listed
//
// A savepoint's word changes as long as its level is open, which the session's slot says.  So a SUB word is read, then
// the slots, then the word again: a level that was not open in between was closed before, and the second read is final.
#include <algorithm>
#include <array>

#include "extension/engine/txn/open_levels.hpp"
#include "extension/engine/txn/transaction.hpp"

namespace engine {

using coherence::Batch;

namespace {

bool is_sub(StatusWord word) { return word.state() == TxnState::kSub; }

}  // namespace

std::vector<uint64_t> TxnSystem::pinned_sequences() const {
  std::vector<uint64_t> all;
  for (auto& pin : shared_.pinned)
    // Pairs with unpin_ended().
    if (const uint64_t sequence = pin.load(std::memory_order_acquire)) all.push_back(sequence);
  return all;
}

void TxnSystem::pin_in_ring(const std::vector<uint64_t>& sequences) noexcept {
  size_t next = 0;
  for (auto& pin : shared_.pinned)
    if (next < sequences.size() && pin.load(std::memory_order_relaxed) == 0)
      pin.store(sequences[next++], std::memory_order_relaxed);  // released with low_water
  VERIFY(next == sequences.size());
}

// Whether the savepoint's word, which was read before `open` was made, may still change.
Result<bool> TxnSystem::may_change(TxnId sub, const OpenLevels& open, UnlistedOwners& owners) {
  if (open.has(sub)) return true;
  if (!open.unlisted()) return false;
  return owned_by_unlisted(sub, open, owners);
}

// A nest of savepoints is climbed once, not once for each of them.  Of an owner that ends meanwhile the former state
// may be returned.
Result<bool> TxnSystem::owned_by_unlisted(TxnId sub, const OpenLevels& open, UnlistedOwners& owners) {
  std::vector<uint64_t> path;
  bool unlisted = false;
  for (TxnId at = sub;;) {
    if (auto known = owners.find(at.raw); known != owners.end()) {
      unlisted = known->second;
      break;
    }
    path.push_back(at.raw);
    auto word = read_word(at);
    if (!word) return word.error();
    if (word->state() == TxnState::kUnused) return Errc::kCorrupt;
    if (word->state() != TxnState::kSub) {
      unlisted = word->running() && open.unlisted(word->session());
      break;
    }
    at = word->parent();
  }
  for (uint64_t id : path) owners.emplace(id, unlisted);
  return unlisted;
}

// Makes of `log` what pages are to say of the ids from `first` on, up to the first that cannot leave the ring; `pinned`
// learns those that keep their places.
Status TxnSystem::sort_out(uint64_t first, std::vector<StatusWord>& log, std::vector<uint64_t>& pinned) {
  GCL_TRY(read_log(first, log.size(), log.data()));
  const OpenLevels open(shared_);  // after the words, before the second look
  const std::vector<uint64_t> before = pinned_sequences();
  const uint64_t slots = words_.slots();
  std::vector<bool> taken(log.size());
  for (uint64_t sequence : before)
    for (uint64_t i = (sequence % slots + slots - first % slots) % slots; i < log.size(); i += slots) taken[i] = true;
  std::vector<bool> changes(log.size());
  UnlistedOwners owners;
  for (size_t i = 0; i < log.size(); ++i) {
    if (taken[i] || !is_sub(log[i])) continue;
    auto may = may_change(TxnId::make(node_, first + i), open, owners);
    if (!may) return may.error();
    changes[i] = *may;
  }
  std::vector<StatusWord> again(log.size());
  GCL_TRY(read_log(first, again.size(), again.data()));
  const size_t room = std::min<uint64_t>(TxnShared::kPinnedMax, slots / 4) - before.size();
  for (size_t i = 0; i < log.size(); ++i) {
    if (taken[i]) {
      log[i] = StatusWord::skipped();
    } else if (log[i].running() || changes[i]) {
      if (pinned.size() == room) return log.resize(i), Status{};
      pinned.push_back(first + i);
      log[i] = StatusWord::pinned();
    } else if (is_sub(log[i])) {
      log[i] = again[i];
    } else if (log[i].state() == TxnState::kUnused && first + i > shared_.join_base) {
      return log.resize(i), Status{};  // being assigned just now
    }
  }
  return {};
}

// The page gets the final word before the place gets another.
Status TxnSystem::unpin(uint64_t sequence, StatusWord word) {
  GCL_TRY(write_overflow_word(sequence, word));
  const uint64_t skipped = StatusWord::skipped().raw;
  Batch batch(words_.clock().node());
  batch.write(words_.status(TxnId::make(node_, sequence)), &skipped, sizeof skipped);
  return run(batch);
}

// Pinned ids that have ended.
Status TxnSystem::unpin_ended() {
  if (pinned_sequences().empty()) return {};
  auto read_word_of = [&](uint64_t sequence, StatusWord* to) -> Status {
    const auto raw = load(words_.status(TxnId::make(node_, sequence)));
    if (raw) *to = StatusWord{*raw};
    return raw.ok() ? Status{} : Status{raw.error()};
  };
  std::array<StatusWord, TxnShared::kPinnedMax> seen;
  for (size_t i = 0; i < seen.size(); ++i) {
    if (pool_.fenced()) return Errc::kFenced;
    if (const uint64_t sequence = shared_.pinned[i].load(std::memory_order_relaxed))
      GCL_TRY(read_word_of(sequence, &seen[i]));
  }
  const OpenLevels open(shared_);  // after the words, before the second look
  UnlistedOwners owners;
  for (size_t i = 0; i < seen.size(); ++i) {
    const uint64_t sequence = shared_.pinned[i].load(std::memory_order_relaxed);
    if (sequence == 0) continue;
    if (pool_.fenced()) return Errc::kFenced;
    StatusWord word = seen[i];
    if (is_sub(word)) {
      auto may = may_change(TxnId::make(node_, sequence), open, owners);
      if (!may) return may.error();
      if (*may) continue;
      GCL_TRY(read_word_of(sequence, &word));
    }
    if (word.running()) continue;
    VERIFY(word.final() || is_sub(word));
    GCL_TRY(unpin(sequence, word));
    // Pairs with pinned_sequences(): the place is cleared for its next id after this.
    shared_.pinned[i].store(0, std::memory_order_release);
  }
  return {};
}

// Unpins what a former incarnation left: none of its ids runs any more (resolve_former_incarnation()).
Status TxnSystem::unpin_leftovers(uint64_t frozen, uint64_t low) {
  constexpr uint64_t kStep = 1000;
  std::vector<StatusWord> log;
  for (uint64_t first = frozen + 1; first <= low; first += log.size()) {
    log.resize(std::min(kStep, low - first + 1));
    GCL_TRY(read_words(first, log.size(), log.data()));
    for (size_t i = 0; i < log.size(); ++i) {
      if (log[i].state() != TxnState::kPinned) continue;
      const auto raw = load(words_.status(TxnId::make(node_, first + i)));
      if (!raw) return raw.error();
      const StatusWord word{*raw};
      if (!word.final() && !is_sub(word)) return Errc::kCorrupt;
      GCL_TRY(unpin(first + i, word));
    }
  }
  return {};
}

// Free words for new ids, each for its own id only (txn.word-holds-sequence); places of pinned ids are left alone.
Status TxnSystem::clear_words(uint64_t first, uint64_t count) {
  const uint64_t slots = words_.slots();
  std::vector<StatusWord> fresh(count);
  for (uint64_t i = 0; i < count; ++i) fresh[i] = StatusWord::unused(TxnId::make(node_, first + i));
  std::vector<uint64_t> ends;  // of runs: behind them lies a place to leave alone, or the ring's end
  for (uint64_t sequence : pinned_sequences())
    if (uint64_t i = (sequence % slots + slots - first % slots) % slots; i < count) ends.push_back(i);
  std::sort(ends.begin(), ends.end());
  ends.push_back(count);
  uint64_t at = 0;
  for (uint64_t end : ends) {
    while (at < end) {
      const uint64_t part = std::min(end - at, slots - (first + at) % slots);
      Batch batch(words_.clock().node());
      batch.write(words_.status(TxnId::make(node_, first + at)), &fresh[at], uint32_t(part * 8));
      GCL_TRY(run_unordered(batch));
      at += part;
    }
    at = end + 1;
  }
  return {};
}

// Whether `found`, where the id's free word should be, says that the sequence is to be skipped.
Result<bool> TxnSystem::skipped(TxnId id, StatusWord found) {
  const uint64_t slots = words_.slots();
  if (found.state() == TxnState::kSkipped) return true;
  for (uint64_t sequence : pinned_sequences())
    if (sequence % slots == id.sequence() % slots) return true;
  // It was unpinned between the two reads; and if this session slept, the ring may have gone on.
  const auto now = load(words_.status(id));
  if (!now) return now.error();
  return StatusWord{*now}.state() == TxnState::kSkipped ||
         shared_.low_water.load(std::memory_order_acquire) >= id.sequence();
}

}  // namespace engine

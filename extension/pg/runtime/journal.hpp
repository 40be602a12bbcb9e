// What the server adds to the pool's journal, in its terms (recovery/restart_journal.hpp).
#pragma once

#include <vector>

#include "bufmgr/buffer_pool.hpp"
#include "extension/engine/txn/leftovers.hpp"
#include "recovery/restart_journal.hpp"

namespace gcl {

inline std::vector<recovery::Verdict> to_journal(const std::vector<engine::Leftovers::Verdict>& verdicts) {
  std::vector<recovery::Verdict> all;
  all.reserve(verdicts.size());
  for (const auto& one : verdicts) all.push_back({one.sequence, one.committed});
  return all;
}

// How the transaction is decided.  kBusy: another process writes the journal; kNoSpace, kCorrupt, kSystem.
inline coherence::Status note_decision(bufmgr::BufferPool& pool, engine::TxnId id, bool committed,
                                       coherence::Problem* problem) {
  if (pool.coherence_pool().durable_path() == nullptr) return {};
  return recovery::note_decision(pool.coherence_pool(), {id.raw, committed}, recovery::Patience::kTry, problem);
}

// SQLSTATE for a process that could not write it: 53100, XX001, 58030.
int journal_sqlstate(coherence::Errc outcome);
[[noreturn]] void raise_unjournaled(coherence::Errc outcome, const coherence::Problem& problem);

}  // namespace gcl

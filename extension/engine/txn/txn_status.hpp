// StatusWord: one word of the status log, the status of one id.
//
//    63..60 state | 59..0 payload        kUnused: the sequence of the id that may take it; 0: none ever
//                                        kActive, kPrepared, kCommitting: low bits of the sequence, the owner's session
//                                        kSub: the parent's raw id
//                                        kCommitted: cts;  kAborted: the parent's raw id (a savepoint), or 0 (a top)
//                                        kPinned (on pages only): the word is still in the ring (txn.running-id-pinned)
//                                        kSkipped: no id has this sequence, its place was taken (txn.running-id-pinned)
#pragma once

#include <cstdint>

#include "coherence/base/ids.hpp"
#include "extension/engine/txn/txn_id.hpp"

namespace engine {

enum class TxnState : uint8_t {
  kUnused,
  kActive,
  kSub,
  kPrepared,
  kCommitting,
  kCommitted,
  kAborted,
  kPinned,
  kSkipped
};

struct StatusWord {
  uint64_t raw = 0;
  static constexpr StatusWord of(TxnState state, uint64_t payload) { return {uint64_t(state) << 60 | payload}; }
  static constexpr StatusWord unused(TxnId id) { return of(TxnState::kUnused, id.sequence()); }
  static constexpr StatusWord pinned() { return of(TxnState::kPinned, 0); }
  static constexpr StatusWord skipped() { return of(TxnState::kSkipped, 0); }
  static constexpr StatusWord active(coherence::SessionId s, TxnId id) { return running(TxnState::kActive, s, id); }
  static constexpr StatusWord prepared(coherence::SessionId s, TxnId id) { return running(TxnState::kPrepared, s, id); }
  static constexpr StatusWord committing(coherence::SessionId s, TxnId id) {
    return running(TxnState::kCommitting, s, id);
  }
  static constexpr StatusWord committed(Cts cts) { return of(TxnState::kCommitted, cts.value); }
  static constexpr StatusWord sub(TxnId parent) { return of(TxnState::kSub, parent.raw); }
  static constexpr StatusWord aborted(TxnId parent = {}) { return of(TxnState::kAborted, parent.raw); }
  // No two ids ever have the same word while they run, though they come to have the same place in the ring.
  static constexpr StatusWord running(TxnState state, coherence::SessionId s, TxnId id) {
    return of(state, (id.sequence() << 16 | s.value) & ((uint64_t{1} << 60) - 1));
  }
  constexpr TxnState state() const { return TxnState(raw >> 60); }
  constexpr uint64_t payload() const { return raw & ((uint64_t{1} << 60) - 1); }
  constexpr Cts cts() const { return {payload()}; }
  constexpr TxnId parent() const { return {payload()}; }
  constexpr coherence::SessionId session() const { return {uint16_t(payload())}; }
  constexpr bool running() const {
    return state() == TxnState::kActive || state() == TxnState::kPrepared || state() == TxnState::kCommitting;
  }
  constexpr bool final() const { return state() == TxnState::kCommitted || state() == TxnState::kAborted; }
  constexpr bool operator==(const StatusWord&) const = default;
};
static_assert(sizeof(StatusWord) == 8);

// The clock starts here: every snapshot sees a transaction with this cts.
inline constexpr Cts kFrozenCts{1};

}  // namespace engine

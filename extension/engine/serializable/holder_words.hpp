// What coherence tells other nodes of a transaction that holds a page (coherence::Holder::by).
#pragma once

#include "coherence/message/slots.hpp"
#include "extension/engine/txn/txn_id.hpp"

namespace engine {

inline constexpr uint64_t kByMask = (uint64_t{1} << coherence::kHolderBits) - 1;
constexpr uint64_t by_word(TxnId id) { return id.sequence() & kByMask; }

}  // namespace engine

// TxnId: a transaction, or a writing subtransaction, anywhere in the cluster: (node, sequence).  Never reused.
//
// node 6 bits | sequence 51 bits: 71 years of a million ids a second.  Words that hold one (creators and deleters of
// rows, status words) have the bits above for themselves.
#pragma once

#include <compare>
#include <cstdint>

#include "coherence/base/ids.hpp"

namespace engine {

using coherence::NodeId;

struct TxnId {
  static constexpr int kSequenceBits = 51;
  static constexpr int kBits = kSequenceBits + 6;
  uint64_t raw = 0;  // 0: none
  static constexpr TxnId make(NodeId node, uint64_t sequence) {
    return {uint64_t{node.value} << kSequenceBits | (sequence & ((uint64_t{1} << kSequenceBits) - 1))};
  }
  constexpr bool valid() const { return raw != 0; }
  constexpr NodeId node() const { return {uint8_t(raw >> kSequenceBits & 63)}; }
  constexpr uint64_t sequence() const { return raw & ((uint64_t{1} << kSequenceBits) - 1); }  // starts at 1
  constexpr auto operator<=>(const TxnId&) const = default;
};

// A commit timestamp: the value the cluster's clock had when the transaction committed.  A snapshot `s` sees exactly
// the transactions with cts <= s.
struct Cts {
  uint64_t value = 0;
  constexpr auto operator<=>(const Cts&) const = default;
};

}  // namespace engine

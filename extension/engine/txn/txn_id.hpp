// TxnId: a transaction, or a writing subtransaction, anywhere in the cluster: (node, sequence).  Never reused.
//
// Row words (creator, deleter) carry a kind in their top four bits and an id or a commit timestamp below:
//
//    63..60 kind | 59..54 node | 53..0 sequence        kinds that hold an id
//    63..60 kind | 59..0  commit timestamp             kinds that hold a timestamp
#pragma once

#include <compare>
#include <cstdint>

#include "coherence/base/ids.hpp"

namespace engine {

using coherence::NodeId;

struct TxnId {
  uint64_t raw = 0;  // 0: none
  static constexpr TxnId make(NodeId node, uint64_t sequence) {
    return {uint64_t{node.value} << 54 | (sequence & ((uint64_t{1} << 54) - 1))};
  }
  constexpr bool valid() const { return raw != 0; }
  constexpr NodeId node() const { return {uint8_t(raw >> 54 & 63)}; }
  constexpr uint64_t sequence() const { return raw & ((uint64_t{1} << 54) - 1); }  // starts at 1
  constexpr auto operator<=>(const TxnId&) const = default;
};

// A commit timestamp: the value the cluster's clock had when the transaction committed.  A snapshot `s` sees exactly
// the transactions with cts <= s.
struct Cts {
  uint64_t value = 0;
  constexpr auto operator<=>(const Cts&) const = default;
};

}  // namespace engine

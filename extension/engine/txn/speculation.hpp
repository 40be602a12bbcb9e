// SpeculationWord and Speculation: a row that a session has inserted and may still take back (ON CONFLICT), as its word
// in the pool names it, and as others wait for it.  Rules: txn.speculation-names-row and those behind it.
//
//    63..41 number | 40..0 row     the row: where it is, as Tid::packed(), never 0; 0: that speculation is over
#pragma once

#include <cstdint>

#include "coherence/base/ids.hpp"
#include "extension/engine/txn/txn_id.hpp"

namespace engine {

struct SpeculationWord {
  uint64_t raw = 0;
  static constexpr int kRowBits = 41;
  static constexpr uint64_t kNumbers = uint64_t{1} << (64 - kRowBits);
  static constexpr SpeculationWord of(uint64_t number, uint64_t row) { return {number << kRowBits | row}; }
  constexpr uint64_t number() const { return raw >> kRowBits; }
  constexpr uint64_t row() const { return raw & ((uint64_t{1} << kRowBits) - 1); }
  constexpr bool open() const { return row() != 0; }
  constexpr SpeculationWord next(uint64_t row) const { return of((number() + 1) % kNumbers, row); }
  constexpr SpeculationWord over() const { return of(number(), 0); }
  constexpr bool operator==(const SpeculationWord&) const = default;
};
static_assert(sizeof(SpeculationWord) == 8);

// One speculation of one session, and what others wait for.  Its wait id is none of a transaction: those leave the top
// four bits 0.
//
//    63 set | 45..40 node | 39..23 session | 22..0 number
struct Speculation {
  coherence::NodeId node;
  coherence::SessionId session;
  uint64_t number = 0;
  TxnId top{};  // whose session it is; not part of the id
  static constexpr bool is_wait_id(uint64_t id) { return id >> 63 != 0; }
  constexpr uint64_t wait_id() const {
    return uint64_t{1} << 63 | uint64_t{node.value} << 40 | uint64_t{session.value} << 23 | number;
  }
  static constexpr Speculation of_wait_id(uint64_t id) {
    return {{uint8_t(id >> 40 & 63)}, {uint16_t(id >> 23)}, id & (SpeculationWord::kNumbers - 1)};
  }
};
static_assert(SpeculationWord::kNumbers == uint64_t{1} << 23 && sizeof(coherence::SessionId) == 2);

}  // namespace engine

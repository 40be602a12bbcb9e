// LatchWord: the 64-bit word of a page in the pool.
//
//   63..58                                57..0
//   owner, stored as n + 1                reader bitmap: bit n belongs to node n
//   (0: none; 59..63 reserved)
//
// A reader bit under an owner is a pending reader, or a share that this owner has asked back, under none a share. Only
// node n (or its repairer, or the owner that it asked to: coherence.reader-joins-taker) writes bit n, and only the
// owner moves the owner field, so every transition may be an addition: it can neither carry nor borrow.
#pragma once

#include <cstdint>

#include "coherence/base/ids.hpp"

namespace coherence {

struct LatchWord {
  static constexpr int kOwnerShift = 58;
  static constexpr uint64_t kReaders = (uint64_t{1} << kOwnerShift) - 1;

  uint64_t raw = 0;

  static constexpr uint64_t owner_bits(NodeId n) { return uint64_t(n.value + 1) << kOwnerShift; }
  static constexpr uint64_t reader_bit(NodeId n) { return uint64_t{1} << n.value; }

  constexpr bool has_owner() const { return raw >> kOwnerShift; }
  constexpr NodeId owner() const { return {uint8_t((raw >> kOwnerShift) - 1)}; }  // not valid if there is none
  constexpr NodeSet readers() const { return {raw & kReaders}; }
  constexpr bool well_formed() const { return raw >> kOwnerShift <= uint64_t(kNodesMax); }
  constexpr bool operator==(const LatchWord&) const = default;

  // The only words a CAS ever proposes, and the only addends an FAA ever carries.
  static constexpr LatchWord free() { return {0}; }
  static constexpr LatchWord owned_by(NodeId n) { return {owner_bits(n)}; }
  static constexpr LatchWord sole_reader(NodeId n) { return {reader_bit(n)}; }
  static constexpr LatchWord shared_by(NodeSet nodes) { return {nodes.bits}; }
  static constexpr LatchWord claimed_by(NodeId n, NodeSet over) { return {owner_bits(n) | over.bits}; }
  static constexpr uint64_t add_reader(NodeId n) { return reader_bit(n); }
  static constexpr uint64_t drop_reader(NodeId n) { return ~reader_bit(n) + 1; }
  static constexpr uint64_t drop_owner(NodeId n) { return ~owner_bits(n) + 1; }
  static constexpr uint64_t hand_over(NodeId from, NodeId to) { return owner_bits(to) - owner_bits(from); }
  static constexpr uint64_t downgrade(NodeId n, NodeSet joining = {}) {
    return (reader_bit(n) | joining.bits) - owner_bits(n);
  }

  constexpr LatchWord plus(uint64_t addend) const { return {raw + addend}; }
};
static_assert(sizeof(LatchWord) == 8);

namespace latch_word_proofs {
constexpr NodeId kA{0}, kB{1}, kZ{57};
static_assert(LatchWord::owned_by(kA).has_owner() && LatchWord::owned_by(kA).owner() == kA);
static_assert(!LatchWord::free().has_owner() && LatchWord::free().owner() == NodeId());
static_assert(LatchWord::owned_by(kZ).owner() == kZ && LatchWord::owned_by(kZ).well_formed());
static_assert(LatchWord::free().plus(LatchWord::add_reader(kZ)).plus(LatchWord::drop_reader(kZ)) == LatchWord::free());
static_assert(LatchWord::owned_by(kB).plus(LatchWord::hand_over(kB, kA)) == LatchWord::owned_by(kA));
static_assert(LatchWord::owned_by(kA).plus(LatchWord::hand_over(kA, kZ)) == LatchWord::owned_by(kZ));
static_assert(LatchWord::owned_by(kZ).plus(LatchWord::downgrade(kZ)) == LatchWord::sole_reader(kZ));
static_assert(LatchWord::owned_by(kZ).plus(LatchWord::downgrade(kZ, NodeSet::of(kA).with(kB))) ==
              LatchWord::shared_by(NodeSet::of(kA).with(kB).with(kZ)));
static_assert(LatchWord::owned_by(kZ).plus(LatchWord::drop_owner(kZ)) == LatchWord::free());
static_assert(LatchWord::owned_by(kZ).plus(LatchWord::add_reader(kB)).plus(LatchWord::hand_over(kZ, kA)).readers() ==
              NodeSet::of(kB));
}  // namespace latch_word_proofs

}  // namespace coherence

// HostXidWord: of a session's slot, the host's number of the transaction that it prepared last
// (txn.kind-before-prepared), and how that was decided, if it was in doubt (txn.doubt-decided-once).
//
//    63 decided | 62 committed | 61..0 number; 0: gcl tables alone
#pragma once

#include <cstdint>

namespace engine {

struct HostXidWord {
  static constexpr uint64_t kDecided = uint64_t{1} << 63, kCommitted = uint64_t{1} << 62;
  uint64_t raw = 0;
  constexpr uint64_t number() const { return raw & (kCommitted - 1); }
  constexpr bool decided() const { return (raw & kDecided) != 0; }
  constexpr bool committed() const { return (raw & kCommitted) != 0; }
  constexpr HostXidWord as_decided(bool committed) const {
    return {number() | kDecided | (committed ? kCommitted : 0)};
  }
  constexpr bool operator==(const HostXidWord&) const = default;
};
static_assert(sizeof(HostXidWord) == 8);

}  // namespace engine

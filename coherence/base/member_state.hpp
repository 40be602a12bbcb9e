// What a node is to the pool.
#pragma once

#include <cstdint>

namespace coherence {

enum class MemberState : uint32_t {
  kAbsent = 0,
  kLive = 1,
  kLeaving = 2,  // still serves
  kDead = 3,     // did not leave; the pool is fenced
};

struct NodeInfo {
  MemberState state = MemberState::kAbsent;
  uint64_t incarnation = 0;
  int32_t pid = 0;
  bool serves() const { return state == MemberState::kLive || state == MemberState::kLeaving; }
};

}  // namespace coherence

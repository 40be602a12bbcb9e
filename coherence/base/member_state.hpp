// What a node is to the pool.
#pragma once

#include <cstdint>

namespace coherence {

enum class MemberState : uint32_t {
  kAbsent = 0,
  kLive = 1,
  kLeaving = 2,  // still serves
  kDead = 3,     // did not leave: the pool is fenced, or survivors repair (repair.*)
  kSwept = 4,    // dead, and no latch word names it any more
};

struct NodeInfo {
  MemberState state = MemberState::kAbsent;
  uint64_t incarnation = 0;
  int32_t pid = 0;
  bool dead() const { return state == MemberState::kDead || state == MemberState::kSwept; }
  bool serves() const { return state == MemberState::kLive || state == MemberState::kLeaving; }
};

}  // namespace coherence

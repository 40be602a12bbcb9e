#include "extension/engine/ddl/ddl_states.hpp"

#include <gtest/gtest.h>

namespace engine {
namespace {

template <class State, class... Events>
std::optional<State> after(State state, Events... events) {
  std::optional<State> at = state;
  ((at = at ? next(*at, events) : at), ...);
  return at;
}

TEST(DdlStates, ATransactionIsPreparedOnceAndThenCommits) {
  using enum CoordinatorEvent;
  EXPECT_EQ(CoordinatorState::kCommitted, after(CoordinatorState::kNone, kOpen, kOpen, kPrepare, kCommit));
  EXPECT_FALSE(after(CoordinatorState::kNone, kOpen, kPrepare, kPrepare));
  EXPECT_FALSE(after(CoordinatorState::kNone, kPrepare));
}

TEST(DdlStates, NothingIsAddedToWhatIsPrepared) {
  using enum CoordinatorEvent;
  EXPECT_FALSE(after(CoordinatorState::kNone, kOpen, kPrepare, kOpen));
  EXPECT_FALSE(after(CoordinatorState::kNone, kOpen, kCommit, kOpen));
}

TEST(DdlStates, WhateverIsOpenCanBeClosed) {
  using enum CoordinatorEvent;
  for (const auto state : {CoordinatorState::kOpen, CoordinatorState::kPrepared, CoordinatorState::kCommitted})
    EXPECT_EQ(CoordinatorState::kNone, next(state, kClose));
}

TEST(DdlStates, WhatWasNotPreparedIsNotCommitted) {
  using enum ParticipantEvent;
  EXPECT_EQ(ParticipantState::kCommitting, after(ParticipantState::kNone, kEnter, kPrepare, kCommit));
  EXPECT_FALSE(after(ParticipantState::kNone, kEnter, kCommit));
  EXPECT_FALSE(after(ParticipantState::kNone, kEnterLate, kCommit));
  EXPECT_FALSE(after(ParticipantState::kNone, kEnter, kFail, kCommit));
  EXPECT_FALSE(after(ParticipantState::kNone, kEnter, kPrepare, kFail, kCommit));
  EXPECT_FALSE(after(ParticipantState::kNone, kCommit));
}

TEST(DdlStates, WhatIsLostIsNotPrepared) {
  using enum ParticipantEvent;
  EXPECT_FALSE(after(ParticipantState::kNone, kEnterLate, kPrepare));
  EXPECT_FALSE(after(ParticipantState::kNone, kEnter, kFail, kPrepare));
}

TEST(DdlStates, AParticipantLeavesWhateverBecameOfIt) {
  using enum ParticipantState;
  for (const auto state : {kNone, kTaking, kPrepared, kCommitting, kLost}) {
    EXPECT_EQ(kNone, next(state, ParticipantEvent::kLeave));
    EXPECT_TRUE(next(state, ParticipantEvent::kFail));
  }
}

TEST(DdlStates, ATransactionIsLeftBeforeTheNextIsEntered) {
  using enum ParticipantEvent;
  EXPECT_FALSE(after(ParticipantState::kNone, kEnter, kEnter));
  EXPECT_TRUE(after(ParticipantState::kNone, kEnter, kLeave, kEnter));
}

}  // namespace
}  // namespace engine

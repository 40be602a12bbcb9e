// Connections that break: transport.unknown-never-success, transport.unknown-cuts-off.
#include <algorithm>

#include "contract.hpp"

namespace conformance {

INSTANTIATE_TEST_SUITE_P(Transport, BrokenConnection, testing::ValuesIn(breaking_transports()), kind_name);

namespace {

constexpr int kWords = 8;

// One that knows how often it was told.
struct Told final : UnknownOutcomes {
  void outcome_unknown() noexcept override { told++; }
  int told = 0;
};

}  // namespace

// Whichever operation it was: those in front of it took place, it and those behind it did not.
TEST_P(BrokenConnection, ItsBatchTookEffectUpToSomeOperationAndIsNoSuccess) {
  for (int took = 0; took <= kWords; took++) {
    for (int i = 0; i < kWords; i++) write_word(at(uint64_t(i) * 64, kOne), 0);
    for (uint32_t i = 0; i < kWords; i += 2) set_word(local(i * 8), 7);
    Batch batch(kOne);
    for (uint32_t i = 0; i < kWords; i += 2) {
      batch.write(at(i * 64, kOne), local(i * 8), 8);
      batch.faa(at((i + 1) * 64, kOne), 7);
    }
    me->break_after(took);
    EXPECT_EQ(memory().run(batch).error(), Errc::kFenced);
    EXPECT_EQ(batch.state.load(), BatchState::kUnknown);
    EXPECT_TRUE(batch.done());
    EXPECT_FALSE(batch.known());
    auto fresh = transport->user();
    for (int i = 0; i < kWords; i++)
      EXPECT_EQ(*fresh->memory().load(at(uint64_t(i) * 64, kOne)), i < took ? 7u : 0u) << i << " of " << took;
  }
}

// Before the caller is.  A batch that was not the broken one is as good as ever.
TEST_P(BrokenConnection, TheUserIsTold) {
  Told user;
  memory().set_user(&user, nullptr);
  for (int took = 0; took <= 1; took++) {
    user.told = 0;
    me->break_after(took);
    EXPECT_EQ(memory().faa(at(0), 1).error(), Errc::kFenced);
    EXPECT_EQ(user.told, 1);
    me->break_after(took);
    EXPECT_EQ(memory().cas(at(8), 0, 1).error(), Errc::kFenced) << "though nothing was swapped, or all";
    EXPECT_EQ(user.told, 2);
    me->break_after(took);
    EXPECT_EQ(memory().load(at(16)).error(), Errc::kFenced);
    EXPECT_EQ(user.told, 3);
    EXPECT_TRUE(memory().load(at(16)).ok());
    EXPECT_EQ(user.told, 3);
  }
}

// Of several that are under way at once each has an outcome of its own.
TEST_P(BrokenConnection, OtherBatchesUnderWayEndAsEver) {
  Told user;
  memory().set_user(&user, nullptr);
  Batch broken(kZero), other(kZero), third(kOne);
  broken.faa(at(0), 1);
  other.faa(at(64), 1);
  third.faa(at(64, kOne), 1);
  me->break_after(0);
  Batch* all[] = {&broken, &other, &third};
  memory().post(all, 3);
  EXPECT_TRUE(memory().wait(third).ok());
  EXPECT_TRUE(memory().wait(other).ok());
  EXPECT_EQ(user.told, 0) << "nobody has asked for that one yet";
  EXPECT_EQ(memory().wait(broken).error(), Errc::kFenced);
  EXPECT_EQ(user.told, 1);
  EXPECT_EQ(*memory().load(at(64)), 1u);
  EXPECT_EQ(*memory().load(at(64, kOne)), 1u);
}

TEST_P(BrokenConnection, HarmsNobodyElse) {
  auto other = transport->user();
  for (int round = 0; round < 20; round++) {
    Batch mine(kZero);
    mine.faa(at(0), 1);
    me->break_after(round % 2);
    memory().post(mine);
    EXPECT_TRUE(other->memory().faa(at(64), 1));
    EXPECT_FALSE(memory().wait(mine).ok());
  }
  EXPECT_EQ(*other->memory().load(at(64)), 20u);
  EXPECT_EQ(*other->memory().load(at(0)), 10u);
}

}  // namespace conformance

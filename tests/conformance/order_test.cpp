// transport.seen-in-order.  On a processor that reorders these see it happen; everywhere ThreadSanitizer sees whether
// the transport may let it happen: what is told to others by plain memory is ordered by the transport's operations
// alone.
#include <atomic>

#include "contract.hpp"

namespace conformance {
namespace {

constexpr uint64_t kRounds = 100;

// How one tells, and how another looks.
struct Way {
  const char* name;
  void (*tell)(User&, PoolAddress, uint64_t);
  uint64_t (*look)(User&, PoolAddress);
};

void run_batch(User& user, Batch& batch) { EXPECT_TRUE(user.memory().run(batch)); }

uint64_t word_of(const std::byte* at) {
  uint64_t value;
  memcpy(&value, at, sizeof value);
  return value;
}

void write_word_of(User& user, PoolAddress to, uint64_t value) {
  memcpy(user.local(), &value, sizeof value);
  Batch batch(to.node());
  batch.write(to, user.local(), 8);
  run_batch(user, batch);
}

// A message of 24 bytes, at its end what is looked at.
void write_message(User& user, PoolAddress to, uint64_t value) {
  const uint64_t message[3] = {value, value, value};
  memcpy(user.local(), message, sizeof message);
  Batch batch(to.node());
  batch.write(to, user.local(), sizeof message);
  run_batch(user, batch);
}

void add_one(User& user, PoolAddress to, uint64_t) { EXPECT_TRUE(user.memory().faa(to, 1)); }

uint64_t load_word(User& user, PoolAddress from) { return *user.memory().load(from); }

uint64_t read_word_of(User& user, PoolAddress from) {
  Batch batch(from.node());
  batch.read(from, user.local(), 8);
  run_batch(user, batch);
  return word_of(user.local());
}

uint64_t read_message(User& user, PoolAddress from) {
  Batch batch(from.node());
  batch.read(from, user.local(), 24);
  run_batch(user, batch);
  return word_of(user.local() + 16);
}

constexpr Way kWays[] = {
    {"a WRITE of a word, and LOAD", write_word_of, load_word},
    {"a WRITE of a word, and READ", write_word_of, read_word_of},
    {"a WRITE of more, and READ", write_message, read_message},
    {"FAA, and READ", add_one, read_word_of},
    {"FAA, and LOAD", add_one, load_word},
};

}  // namespace

// Of what is told, ThreadSanitizer knows only what the transport does: `payload` has no order of its own.
TEST_P(MemoryContract, AUserThatSeesWhatWasWrittenSeesWhatCameBeforeIt) {
  for (size_t i = 0; i < std::size(kWays); i++) {
    const Way& way = kWays[i];
    const PoolAddress there = at(64 * i), back = at(1024 + 64 * i, kOne);
    uint64_t payload = 0;
    in_threads(2, [&](User& user, int who) {
      for (uint64_t round = 1; round <= kRounds; round++) {
        if (who == 0) {
          payload = round;
          way.tell(user, there, round);
          while (way.look(user, back) != round) std::this_thread::yield();
          EXPECT_EQ(payload, round + 1'000'000) << way.name;
        } else {
          while (way.look(user, there) != round) std::this_thread::yield();
          EXPECT_EQ(payload, round) << way.name;
          payload = round + 1'000'000;
          way.tell(user, back, round);
        }
      }
    });
  }
}

// As a count that covers entries, and the mark behind it: two WRITEs, in one batch or in two.
TEST_P(MemoryContract, WritesOfABatchAndOfBatchesOneAfterAnotherAreSeenInOrder) {
  const PoolAddress first = at(0, kOne), second = at(4096, kOne), stop = at(8192, kOne);
  for (const bool together : {true, false}) {
    pid_t writer = in_process([&](User& user) {
      for (uint64_t round = *user.memory().load(first) + 1; *user.memory().load(stop) == uint64_t(!together); round++) {
        set_word(user.local(), round);
        Batch one(kOne), two(kOne);
        one.write(first, user.local(), 8);
        (together ? one : two).write(second, user.local(), 8);
        run(user, one);
        if (!together) run(user, two);
      }
    });
    uint64_t before = 0;
    for (uint64_t seen = 0; seen < kRounds && !HasFailure();) {
      Batch batch(kOne);
      const int mark = batch.load(second);
      batch.read(first, local(), 8);
      run(batch);
      EXPECT_GE(word(local()), batch.op(mark).old) << (together ? "in one batch" : "in two");
      seen += batch.op(mark).old != before;
      before = batch.op(mark).old;
    }
    EXPECT_TRUE(memory().faa(stop, 1));
    EXPECT_TRUE(ended_well(writer));
  }
}

// As the lists that nodes publish: an even version, the same before and behind a READ, is that of what was read.
TEST_P(MemoryContract, AVersionAroundWhatIsWrittenTellsWhetherItWasReadWhole) {
  constexpr uint32_t kBytes = 512;
  const PoolAddress version = at(64, kOne), body = at(128, kOne), stop = at(0, kOne);
  pid_t writer = in_process([&](User& user) {
    for (uint64_t round = 1; *user.memory().load(stop) == 0; round++) {
      for (uint32_t i = 0; i < kBytes; i += 8) set_word(user.local() + i, round);
      Batch batch(kOne);
      batch.faa(version, 1);
      batch.write(body, user.local(), kBytes);
      batch.faa(version, 1);
      run(user, batch);
    }
  });
  uint64_t before = 0;
  for (uint64_t whole = 0; whole < kRounds && !HasFailure();) {
    Batch batch(kOne);
    const int first = batch.load(version);
    batch.read(body, local(), kBytes);
    const int last = batch.load(version);
    run(batch);
    const uint64_t now = batch.op(first).old;
    if (now % 2 != 0 || now != batch.op(last).old) continue;
    for (uint32_t i = 0; i < kBytes; i += 8) EXPECT_EQ(word(local(i)), now / 2);
    whole += now != before;
    before = now;
  }
  EXPECT_TRUE(memory().faa(stop, 1));
  EXPECT_TRUE(ended_well(writer));
}

// transport.write-then-look.  Each sets its word and looks at the other's; one of them at least sees the other.
TEST_P(MemoryContract, OfTwoUsersThatSetAWordAndLookAtTheOthersOneSeesTheOther) {
  std::atomic<int> at_start{0};
  std::atomic<int> saw_nobody[kRounds] = {};
  in_threads(2, [&](User& user, int who) {
    for (uint64_t round = 0; round < kRounds; round++) {
      at_start++;
      while (at_start.load() < 2 * int(round + 1)) std::this_thread::yield();
      const PoolAddress mine = at(uint64_t(who) * 65536 + round * 64), other = at(uint64_t(!who) * 65536 + round * 64);
      Batch batch(kZero);
      who ? batch.faa(mine, 1) : batch.cas(mine, 0, 1);
      const int look = batch.load(other);
      run(user, batch);
      saw_nobody[round] += batch.op(look).old == 0;
    }
  });
  for (const auto& nobody : saw_nobody) EXPECT_LT(nobody.load(), 2);
}

}  // namespace conformance

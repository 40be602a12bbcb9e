// Words and pages under several users at once, threads and processes: nothing is lost, torn, or out of order.
#include <signal.h>

#include <algorithm>
#include <atomic>

#include "contract.hpp"

namespace conformance {

// How often users must have come between each other before a test believes that it saw them do so.
constexpr int kBetween = 40;

TEST_P(MemoryContract, AdditionsOfThreadsAllCountAndAreOneAfterAnother) {
  std::atomic<uint64_t> done{0};
  std::atomic<int> between{0};
  in_threads(4, [&](User& user, int) {
    uint64_t before = 0, mine = 0;
    for (; between.load() < kBetween; mine++) {
      const uint64_t old = *user.memory().faa(at(256, kOne), 1);
      ASSERT_TRUE(mine == 0 || old > before) << "one value twice";
      if (mine != 0 && old != before + 1) between++;
      before = old;
    }
    done += mine;
  });
  EXPECT_EQ(*memory().load(at(256, kOne)), done.load());
}

TEST_P(MemoryContract, AtomicsOfProcessesAllCount) {
  const PoolAddress added = at(256), swapped = at(264, kOne), between = at(512), done = at(576);
  pid_t children[3];
  for (pid_t& child : children)
    child = in_process([&](User& user) {
      Memory& mine = user.memory();
      uint64_t n = 0;
      for (; *mine.load(between) < kBetween; n++) {
        EXPECT_TRUE(mine.faa(added, uint64_t{1} << 32));
        for (uint64_t seen = n;;) {  // what is there if no other user is
          uint64_t old = *mine.cas(swapped, seen, seen + 1);
          if (old == seen) break;
          EXPECT_TRUE(mine.faa(between, 1));
          seen = old;
        }
      }
      EXPECT_TRUE(mine.faa(done, n));
    });
  for (pid_t child : children) EXPECT_TRUE(ended_well(child));
  const uint64_t n = *memory().load(done);
  EXPECT_GT(n, 0u);
  EXPECT_EQ(*memory().load(added), n << 32);
  EXPECT_EQ(*memory().load(swapped), n);
}

// A word that atomics change between two values is never seen as a mix of them, nor does a failed swap report one.
TEST_P(MemoryContract, AWordIsLoadedWhole) {
  constexpr uint64_t kA = 0, kB = ~uint64_t{0};
  constexpr int kChanges = 500;
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    auto mine = transport->user();
    while (!stop.load()) {
      EXPECT_TRUE(mine->memory().cas(at(512), kA, kB));
      EXPECT_TRUE(mine->memory().faa(at(512), 1));  // kB + 1 == kA
    }
  });
  uint64_t before = kA;
  for (int changes = 0; changes < kChanges && !HasFailure();) {
    uint64_t seen = *memory().load(at(512));
    EXPECT_TRUE(seen == kA || seen == kB) << seen;
    changes += seen != before;
    before = seen;
    seen = *memory().cas(at(512), 1, 1);
    EXPECT_TRUE(seen == kA || seen == kB) << seen;
  }
  stop = true;
  writer.join();
}

// What a hand-over rests on: a user that sees the word that came behind the bytes in one batch reads those bytes, or
// newer ones.
TEST_P(MemoryContract, ABatchsBytesAreThereBeforeTheWordBehindThem) {
  constexpr uint64_t kPage = kPageSize, kWord = 64, kStop = 128;
  constexpr int kSeen = 200;
  pid_t writer = in_process([&](User& user) {
    for (uint64_t round = 1; *user.memory().load(at(kStop, kOne)) == 0; round++) {
      for (uint32_t i = 0; i < kPageSize; i += 8) set_word(user.local() + i, round);
      Batch batch(kOne);
      batch.write(at(kPage, kOne), user.local(), kPageSize);
      batch.faa(at(kWord, kOne), 1);
      run(user, batch);
    }
  });
  uint64_t before = 0;
  for (int seen = 0; seen < kSeen && !HasFailure();) {
    Batch batch(kOne);
    int load = batch.load(at(kWord, kOne));
    batch.read(at(kPage, kOne), local(), kPageSize);
    run(batch);
    uint64_t now = batch.op(load).old, oldest = ~uint64_t{0};
    EXPECT_GE(now, before) << "a word goes back";
    for (uint32_t i = 0; i < kPageSize; i += 8) oldest = std::min(oldest, word(local(i)));
    EXPECT_GE(oldest, now);
    seen += now != before;
    before = now;
  }
  EXPECT_TRUE(memory().faa(at(kStop, kOne), 1));
  EXPECT_TRUE(ended_well(writer));
}

// A lock made of a word of one memory node guards a page of the other: batches that were waited for stay in order.
TEST_P(MemoryContract, ABatchThatIsDoneComesBeforeTheNextOneOfAUserThatKnows) {
  std::atomic<uint64_t> done{0};
  std::atomic<int> between{0};
  in_threads(3, [&](User& user, int) {
    uint64_t mine = 0, before = 0;
    while (between.load() < kBetween) {
      if (*user.memory().cas(at(0, kZero), 0, 1) != 0) {
        std::this_thread::yield();
        continue;
      }
      Batch read(kOne);
      read.read(at(0, kOne), user.local(), kPageSize);
      run(user, read);
      const uint64_t value = word(user.local());
      between += value != before;
      before = value + 1;
      for (uint32_t i = 0; i < kPageSize; i += 8) {
        EXPECT_EQ(word(user.local() + i), value);
        if (HasFailure()) between = kBetween;  // and no user waits for us
        set_word(user.local() + i, value + 1);
      }
      Batch write(kOne);
      write.write(at(0, kOne), user.local(), kPageSize);
      run(user, write);
      EXPECT_EQ(*user.memory().cas(at(0, kZero), 1, 0), 1u);
      std::this_thread::yield();  // the others' turn
      mine++;
    }
    done += mine;
  });
  EXPECT_EQ(*memory().load(at(kPageSize - 8, kOne)), done.load());
}

// transport.unknown-never-success, as far as every transport can show it: what a user that is killed had posted took
// effect up to some operation, in order, and nobody else is harmed.
TEST_P(MemoryContract, AKilledUsersBatchTookEffectUpToSomeOperation) {
  constexpr int kWords = 16;
  for (int round = 0; round < 5; round++) {
    pid_t victim = in_process([&](User& user) {
      for (;;) {
        Batch batch(kOne);
        for (int i = 0; i < kWords; i++) batch.faa(at(uint64_t(i) * 64, kOne), 1);
        run(user, batch);
      }
    });
    uint64_t begin = *memory().load(at(0, kOne));
    while (*memory().load(at(0, kOne)) < begin + 100) std::this_thread::yield();
    kill(victim, SIGKILL);
    int status;
    waitpid(victim, &status, 0);
    EXPECT_TRUE(WIFSIGNALED(status));
    // The last operation first: on a network the batch may arrive while we look, beside ours.
    const uint64_t last = *memory().load(at((kWords - 1) * 64, kOne));
    uint64_t behind = last;
    for (int i = kWords - 2; i >= 0; i--) {
      const uint64_t now = *memory().load(at(uint64_t(i) * 64, kOne));
      EXPECT_GE(now, behind) << "operation " << i + 1 << " before the one in front of it";
      behind = now;
    }
    EXPECT_LE(behind - last, uint64_t{1});
    for (int i = 0; i < kWords; i++) write_word(at(uint64_t(i) * 64, kOne), 0);  // level again
    EXPECT_EQ(*memory().faa(at(0, kOne), 5), 0u);
    write_word(at(0, kOne), 0);
  }
}

}  // namespace conformance

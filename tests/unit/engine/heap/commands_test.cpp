// Commands of one transaction: what its older snapshots see of rows that it made and ended, wherever those are noted
// (heap.word-has-one-use, heap.commands-noted-first, heap.note-of-this-version, heap.no-commands-without-ids).
#include <map>
#include <random>

#include "tests/support/longer.hpp"
#include "tests/unit/engine/heap/lock_fixture.hpp"
#include "tests/unit/engine/memory/no_memory.hpp"

namespace engine_test {

TEST(ComboCommands, ACommandCostsARunPerPageHoweverManyRowsInWhateverOrder) {
  ComboCommands own;
  std::mt19937 random(gcl_test::seed(1));
  std::vector<uint16_t> lines;
  for (uint16_t line = 1; line <= kLinesMax; line += 3) lines.push_back(line);
  for (uint64_t page = 1; page <= 100; ++page) {
    std::shuffle(lines.begin(), lines.end(), random);
    for (uint16_t line : lines) ASSERT_TRUE(own.note({{page}, line}, {3, 4}).ok());
  }
  EXPECT_EQ(own.runs(), 100u);
  EXPECT_EQ(own.at({{100}, 1}), (Commands{3, 4}));
  ASSERT_TRUE(own.note({{100}, 2}, {0, 5}).ok());
  EXPECT_EQ(own.at({{100}, 1}), (Commands{3, 4}));
  EXPECT_EQ(own.at({{100}, 2}), (Commands{0, 5}));
  EXPECT_EQ(own.at({{100}, 4}), (Commands{3, 4}));
  own.forget();
  EXPECT_EQ(own.runs(), 0u);
}

TEST(ComboCommands, WhatIsNotedIsFoundAndWhatCouldNotBeIsAsBefore) {
  std::mt19937 random(gcl_test::seed(2));
  for (int round = 0; round < 10 * gcl_test::longer(); ++round) {
    ComboCommands own;
    std::map<std::pair<uint64_t, uint16_t>, Commands> model;
    const unsigned lines = round % 2 == 0 ? 12 : kLinesMax;
    int refused = 0;
    for (int i = 0; i < 4000; ++i) {
      const std::pair<uint64_t, uint16_t> place{random() % 20, uint16_t(1 + random() % lines)};
      const Commands commands{uint32_t(random() % 2), uint32_t(random() % 3)};
      std::optional<NoMemory> none;
      if (random() % 4 == 0) none.emplace();
      auto noted = own.note({{place.first}, place.second}, commands);
      if (noted) {
        model[place] = commands;
      } else {
        ASSERT_TRUE(none);
        ASSERT_EQ(noted.error(), Errc::kNoMemory);
        ++refused;
      }
      for (const auto& [at, known] : model) {
        if (at.first == place.first) {
          ASSERT_EQ(own.at({{at.first}, at.second}), known);
        }
      }
      ASSERT_LE(own.runs(), 20 * lines);
    }
    EXPECT_GT(refused, 10);
  }
}

TEST(ComboCommands, WhatIsNotedAgainLeavesNothingBehind) {
  ComboCommands own;
  for (uint32_t command = 1; command <= 10000; ++command) {
    ASSERT_TRUE(own.note({{1}, 7}, {1, command}).ok());
    ASSERT_TRUE(own.note({{1}, 8}, {2, command}).ok());
    ASSERT_EQ(own.at({{1}, 7}), (Commands{1, command}));
    ASSERT_EQ(own.at({{1}, 8}), (Commands{2, command}));
  }
  EXPECT_EQ(own.runs(), 2u);
}

class CommandsTest : public LockTest {
 protected:
  // A row that shares its page with another as large, so that a third does not fit.
  Tid crowded(const std::string& text) {
    filler_ = a().insert(std::string(3000, 'f'));
    const Tid tid = a().insert(wide(text));
    EXPECT_EQ(tid.block, filler_.block);
    return tid;
  }
  static std::string wide(const std::string& text) { return text + std::string(3000 - text.size(), '.'); }
  UpdateOutcome update(Party& p, Tid tid, const std::string& text, uint32_t command, bool indexed = false) {
    TestRow row(text);
    auto done =
        p.heap.update({.tid = tid, .row = row.image(), .command = command, .indexed_changed = indexed, .wait = false});
    EXPECT_TRUE(done.ok());
    return done ? *done : UpdateOutcome{};
  }
  bool sees(Party& p, Tid tid, uint32_t command) {
    RowBuffer buffer;
    auto read = p.heap.fetch(tid, p.worker.snapshot(command), buffer.bytes);
    EXPECT_TRUE(read.ok());
    return read && read->found;
  }
  // The commands that see the version, as "from..end", of commands 0..20.
  std::string span(Party& p, Tid tid) {
    int from = -1, end = -1;
    for (uint32_t command = 0; command <= 20; ++command) {
      if (sees(p, tid, command) && from < 0) from = int(command);
      if (!sees(p, tid, command) && from >= 0 && end < 0) end = int(command);
      EXPECT_EQ(sees(p, tid, command), from >= 0 && end < 0) << "seen, gone, and seen again";
    }
    return std::to_string(from) + ".." + std::to_string(end);
  }
  RowHeader header(Party& p, Tid tid) {
    RowBuffer buffer;
    EXPECT_TRUE(p.heap.fetch(tid, {.kind = SnapshotKind::kAny}, buffer.bytes)->found);
    RowHeader row;
    std::memcpy(&row, buffer.bytes, sizeof row);
    return row;
  }
  RowResult removes(Party& p, Tid tid, uint32_t command, uint32_t* cmax = nullptr) {
    auto done = p.heap.remove(tid, command, false);
    EXPECT_TRUE(done.ok());
    if (cmax != nullptr) *cmax = done->conflict.cmax;
    return done->result;
  }
  size_t notes(Party& p) { return p.worker->current().commands().runs(); }
  // All of its bytes.
  std::string page(Party& p, uint32_t block) {
    auto rows = std::make_unique<PageRows>();
    EXPECT_TRUE(p.heap.read_block(block, {.kind = SnapshotKind::kAny}, *rows).ok());
    return {reinterpret_cast<const char*>(rows->page), sizeof rows->page};
  }

  Tid filler_;
};

TEST_F(CommandsTest, OfARowMadeAndUpdatedOnItsPageOlderSnapshotsKnowBoth) {
  for (bool indexed : {false, true}) {
    const Tid tid = *a().heap.insert(TestRow("v1").image(), 3);
    const UpdateOutcome done = update(a(), tid, "v2", 7, indexed);
    ASSERT_EQ(done.tid.block, tid.block);
    EXPECT_EQ(span(a(), tid), "4..8");
    EXPECT_EQ(span(a(), done.tid), "8..-1");
    uint32_t cmax = 0;
    EXPECT_EQ(removes(a(), tid, 3), RowResult::kInvisible);
    EXPECT_EQ(removes(a(), tid, 5, &cmax), RowResult::kSelfModified);
    EXPECT_EQ(cmax, 7u);
    EXPECT_EQ(removes(a(), tid, 8), RowResult::kInvisible);
    EXPECT_EQ(notes(a()), 1u);
    a().commit();
    EXPECT_EQ(notes(a()), 0u);
  }
}

TEST_F(CommandsTest, OfARowMadeAndDeletedOlderSnapshotsKnowBoth) {
  const Tid tid = *a().heap.insert(TestRow("v1").image(), 3);
  EXPECT_EQ(removes(a(), tid, 7), RowResult::kOk);
  EXPECT_EQ(span(a(), tid), "4..8");
}

TEST_F(CommandsTest, OfAnothersRowThatLeavesItsPageTheEndIsKnown) {
  const Tid tid = crowded("v1");
  a().commit();
  const UpdateOutcome done = update(b(), tid, wide("v2"), 7);
  ASSERT_NE(done.tid.block, tid.block);
  EXPECT_TRUE(header(b(), tid).far());
  EXPECT_EQ(span(b(), tid), "0..8");
  EXPECT_EQ(span(b(), done.tid), "8..-1");
  EXPECT_TRUE(sees(c(), tid, 0));
  uint32_t cmax = 0;
  EXPECT_EQ(removes(b(), tid, 2, &cmax), RowResult::kSelfModified);
  EXPECT_EQ(cmax, 7u);
  EXPECT_EQ(removes(b(), tid, 8), RowResult::kInvisible);
  b().commit();
  EXPECT_FALSE(sees(c(), tid, 0));
  EXPECT_EQ(*c().heap.latest(tid, c().worker.snapshot()), done.tid);
}

TEST_F(CommandsTest, OfARowThatIsMadeAndLeavesItsPageBothAreKnown) {
  filler_ = *a().heap.insert(TestRow(wide("f")).image(), 2);
  const Tid tid = *a().heap.insert(TestRow(wide("v1")).image(), 3);
  const UpdateOutcome done = update(a(), tid, wide("v2"), 7);
  ASSERT_NE(done.tid.block, tid.block);
  EXPECT_EQ(span(a(), tid), "4..8");
  EXPECT_EQ(span(a(), done.tid), "8..-1");
}

// From page to page, each full; a session that follows finds the newest version, and waits for it.
TEST_F(CommandsTest, AChainLeadsOverPagesToItsNewestVersion) {
  const Tid first = crowded("v0");
  a().commit();
  std::vector<Tid> chain{first};
  for (uint32_t i = 1; i <= 4; ++i) {
    chain.push_back(update(a(), chain.back(), wide("v" + std::to_string(i)), i).tid);
    ASSERT_NE(chain[i].block, chain[i - 1].block);
    a().insert(std::string(3000, 'f'));
  }
  for (uint32_t i = 1; i <= 3; ++i)
    EXPECT_EQ(span(a(), chain[i]), std::to_string(i + 1) + ".." + std::to_string(i + 2));
  RowBuffer buffer;
  const LockRequest newest{.tid = first, .command = 0, .policy = WaitPolicy::kSkip, .follow = true};
  EXPECT_EQ(b().heap.lock(newest, buffer.bytes)->row.result, RowResult::kWouldBlock);
  a().commit();
  auto locked = b().heap.lock(newest, buffer.bytes);
  ASSERT_TRUE(locked.ok());
  EXPECT_EQ(locked->row.result, RowResult::kOk);
  EXPECT_EQ(locked->tid, chain.back());
  EXPECT_EQ(buffer.text(locked->bytes), wide("v4"));
}

// FOR KEY SHARE goes along an update under way, to the page where that leads.
TEST_F(CommandsTest, ALockOfTheKeyFollowsAnUpdateUnderWayToAnotherPage) {
  const Tid first = crowded("v0");
  a().commit();
  const UpdateOutcome done = update(a(), first, wide("v1"), 1);
  ASSERT_NE(done.tid.block, first.block);
  EXPECT_TRUE(b().gets(Want::kKeyShare, first));
  EXPECT_EQ(header(a(), done.tid).deleter.lock_mode(), RowLock::kKeyShare);
  EXPECT_EQ(span(a(), done.tid), "2..-1");  // the word still is its maker's
  EXPECT_EQ(span(a(), first), "0..2");
}

class RolledBack : public CommandsTest, public ::testing::WithParamInterface<int> {
 protected:
  // Ends `tid` in a savepoint, which is rolled back, at 7.
  void end_in_vain(Party& p, Tid tid, bool rollback = true) {
    p.begin_sub();
    if (GetParam() == 0) {
      EXPECT_EQ(removes(p, tid, 7), RowResult::kOk);
    } else {
      const bool far = GetParam() == 2;
      const UpdateOutcome done = update(p, tid, std::string(far ? 8100 : 3000, 'n'), 7);
      EXPECT_EQ(done.tid.block != tid.block, far);
    }
    EXPECT_EQ(span(p, tid).substr(1), "..8");
    if (rollback) p.rollback_sub();
  }
};
INSTANTIATE_TEST_SUITE_P(ByDeleteNearAndFar, RolledBack, ::testing::Values(0, 1, 2));

TEST_P(RolledBack, AnEndLeavesTheMakersCommand) {
  const Tid tid = *a().heap.insert(TestRow(wide("v1")).image(), 3);
  end_in_vain(a(), tid);
  EXPECT_EQ(span(a(), tid), "4..-1");
  EXPECT_EQ(removes(a(), tid, 3), RowResult::kInvisible);
  EXPECT_EQ(removes(a(), tid, 9), RowResult::kOk);
  EXPECT_EQ(span(a(), tid), "4..10");
}

TEST_P(RolledBack, AnEndBehindWhichTheRowIsLockedLeavesTheMakersCommand) {
  const Tid tid = *a().heap.insert(TestRow(wide("v1")).image(), 3);
  end_in_vain(a(), tid);
  a().command = 8;
  EXPECT_TRUE(a().gets(Want::kExclusive, tid));
  EXPECT_TRUE(header(a(), tid).locked());
  EXPECT_FALSE(header(a(), tid).far());
  EXPECT_EQ(span(a(), tid), "4..-1");
  end_in_vain(a(), tid, false);
  EXPECT_EQ(span(a(), tid), "4..8");
  a().rollback_sub();
  EXPECT_EQ(span(a(), tid), "4..-1");
}

TEST_P(RolledBack, AnEndOfAnothersRowLeavesIt) {
  const Tid tid = a().insert(wide("v1"));
  a().commit();
  end_in_vain(b(), tid);
  EXPECT_EQ(span(b(), tid), "0..-1");
  b().command = 8;
  EXPECT_TRUE(b().gets(Want::kShare, tid));
  EXPECT_EQ(span(b(), tid), "0..-1");
  b().abort();
  EXPECT_EQ(span(c(), tid), "0..-1");
  end_in_vain(c(), tid, false);
  c().release_sub();
  c().commit();
  EXPECT_EQ(span(b(), tid), "-1..-1");
}

// A locker beside an update under way does not know what the maker has noted of its versions.
TEST_P(RolledBack, AnEndBehindWhichAnotherLocksTheKeyLeavesTheMakersCommand) {
  const Tid tid = a().insert("v0");
  a().commit();
  const Tid newer = update(a(), tid, "v1", 2).tid;
  end_in_vain(a(), newer);
  EXPECT_TRUE(b().gets(Want::kKeyShare, tid));
  EXPECT_EQ(span(a(), newer), "3..-1");
  EXPECT_EQ(removes(a(), newer, 9), RowResult::kBeingModified);  // it is a lock
  b().abort();
  EXPECT_EQ(removes(a(), newer, 9), RowResult::kOk);
  EXPECT_EQ(span(a(), newer), "3..10");
}

// A line pointer of a row that never was is used again, in the transaction that had noted something of it.
TEST_P(RolledBack, APlaceThatIsUsedAgainHasItsOwnCommands) {
  a().insert("x");
  a().begin_sub();
  const Tid tid = *a().heap.insert(TestRow(wide("v1")).image(), 3);
  EXPECT_EQ(removes(a(), tid, 4), RowResult::kOk);
  a().rollback_sub();
  ASSERT_TRUE(a().heap.prune(tid.block).ok());
  NoIndexes cleaner;
  b().worker.pass_horizon();
  ASSERT_TRUE(b().heap.vacuum(cleaner, kPatienceMs).ok());
  const Tid again = *a().heap.insert(TestRow(wide("v2")).image(), 5);
  ASSERT_EQ(again, tid);
  EXPECT_EQ(span(a(), again), "6..-1");
  end_in_vain(a(), again);
  EXPECT_EQ(span(a(), again), "6..-1");
}

class WithoutMemory : public CommandsTest, public ::testing::WithParamInterface<int> {
 protected:
  // How ending `tid` ends when there is no memory.
  Errc ends(Party& p, Tid tid, uint32_t command) {
    NoMemory none;
    if (GetParam() == 0) {
      auto done = p.heap.remove(tid, command, false);
      return done ? Errc::kOk : done.error();
    }
    TestRow row(std::string(GetParam() == 2 ? 8100 : 3000, 'n'));
    auto done = p.heap.update({.tid = tid, .row = row.image(), .command = command, .wait = false});
    return done ? Errc::kOk : done.error();
  }
  void ends_as_usual(Party& p, Tid tid, uint32_t command) {
    if (GetParam() == 0)
      EXPECT_EQ(removes(p, tid, command), RowResult::kOk);
    else
      EXPECT_EQ(update(p, tid, std::string(GetParam() == 2 ? 8100 : 3000, 'n'), command).row.result, RowResult::kOk);
  }
  static std::string bytes(const RowHeader& row) { return {reinterpret_cast<const char*>(&row), kRowHeaderBytes}; }
  std::vector<std::string> all(Party& p) { return scan_all(p.heap, p.worker.snapshot(20)); }
};
INSTANTIATE_TEST_SUITE_P(ByDeleteNearAndFar, WithoutMemory, ::testing::Values(0, 1, 2));

TEST_P(WithoutMemory, AnEndThatCannotBeNotedIsNotWritten) {
  const Tid tid = *a().heap.insert(TestRow(wide("v1")).image(), 3);
  const std::string before = page(a(), tid.block);
  EXPECT_EQ(ends(a(), tid, 7), Errc::kNoMemory);
  EXPECT_TRUE(page(a(), tid.block) == before);
  EXPECT_EQ(all(a()), std::vector{wide("v1")});
  EXPECT_EQ(span(a(), tid), "4..-1");
  ends_as_usual(a(), tid, 7);
  EXPECT_EQ(span(a(), tid), "4..8");
}

// What its savepoint had noted before and rolled back is still asked for.
TEST_P(WithoutMemory, AnEndThatCannotBeNotedLeavesWhatWasNotedBefore) {
  const Tid tid = *a().heap.insert(TestRow(wide("v1")).image(), 3);
  a().begin_sub();
  ends_as_usual(a(), tid, 5);
  a().rollback_sub();
  const std::string before = bytes(header(a(), tid));
  a().begin_sub();
  EXPECT_EQ(ends(a(), tid, 7), Errc::kNoMemory);
  a().rollback_sub();
  EXPECT_EQ(bytes(header(a(), tid)), before);
  EXPECT_EQ(span(a(), tid), "4..-1");
  a().begin_sub();
  ends_as_usual(a(), tid, 9);
  EXPECT_EQ(span(a(), tid), "4..10");
  a().rollback_sub();
  EXPECT_EQ(span(a(), tid), "4..-1");
}

TEST_P(WithoutMemory, TheSessionGoesOnAfterRollback) {
  const Tid kept = a().insert(wide("k"));
  a().commit();
  const Tid tid = *a().heap.insert(TestRow(wide("v1")).image(), 3);
  EXPECT_EQ(ends(a(), tid, 7), Errc::kNoMemory);
  a().abort();
  EXPECT_EQ(all(a()), std::vector{wide("k")});
  ends_as_usual(a(), kept, 1);
  EXPECT_EQ(span(a(), kept), "0..2");
  a().commit();
  EXPECT_EQ(span(b(), kept), "-1..-1");
}

TEST_F(CommandsTest, OneCommandThatMovesAFullTableNotesAPageOnce) {
  constexpr int kRows = 400;
  std::vector<Tid> rows;
  for (int i = 0; i < kRows; ++i) rows.push_back(a().insert(std::string(300, 'x')));
  a().commit();
  const uint32_t pages = rows.back().block + 1;
  ASSERT_GT(pages, 10u);
  int far = 0;
  for (Tid tid : rows) far += update(a(), tid, std::string(330, 'y'), 5).tid.block != tid.block;
  EXPECT_GT(far, kRows * 3 / 4);
  EXPECT_LE(notes(a()), pages);
  EXPECT_EQ(scan_all(a().heap, a().worker.snapshot(5)), std::vector<std::string>(kRows, std::string(300, 'x')));
  EXPECT_EQ(scan_all(a().heap, a().worker.snapshot(6)), std::vector<std::string>(kRows, std::string(330, 'y')));
}

TEST_F(CommandsTest, ARowThatLeavesItsPageStillRefersToItsValues) {
  filler_ = a().insert(wide("f"));
  TestRow row(wide("v1"));
  RowImage image = row.image();
  image.out_of_line = true;
  const Tid tid = *a().heap.insert(image, 3);
  ASSERT_NE(update(a(), tid, wide("v2"), 7).tid.block, tid.block);
  EXPECT_TRUE(header(a(), tid).out_of_line());
  EXPECT_TRUE(header(a(), tid).far());
  EXPECT_EQ(span(a(), tid), "4..8");
}

}  // namespace engine_test

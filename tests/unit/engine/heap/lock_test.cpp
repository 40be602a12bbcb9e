// Row locks of several holders, one step at a time.
#include "tests/unit/engine/heap/lock_fixture.hpp"

#include "extension/engine/heap/lock_page.hpp"
#include "tests/support/longer.hpp"
#include "tests/unit/engine/memory/no_memory.hpp"

namespace engine_test {

TEST_F(LockTest, TwoTransactionsGetWhatPostgresqlsTableSays) {
  for (Want first : kWants) {
    for (Want second : kWants) {
      SCOPED_TRACE(name(first) + ", then " + name(second));
      Tid tid = committed();
      EXPECT_TRUE(a().gets(first, tid));
      Tid moved = tid;
      RowResult result = b().attempt(second, moved);
      EXPECT_EQ(result == RowResult::kOk, !conflict(first, second));
      EXPECT_EQ(refused(result), conflict(first, second));
      end_all();
    }
  }
}

// A session remembers where a block's locks lie; one without memory for that, whether it made the place or found it,
// gets no lock.
TEST_F(LockTest, WithoutMemoryThereIsNoSecondHolder) {
  Tid tid = committed();
  EXPECT_TRUE(a().gets(Want::kShare, tid));
  for (Party* party : {&b(), &c()}) {
    ASSERT_TRUE(party->worker->id_for_write().ok());
    {
      NoMemory none;
      RowBuffer buffer;
      auto done = party->heap.lock({.tid = tid, .command = 1, .mode = RowLock::kShare, .policy = WaitPolicy::kSkip},
                                   buffer.bytes);
      EXPECT_EQ(done.ok() ? Errc::kOk : done.error(), Errc::kNoMemory);
    }
    a().abort();
    EXPECT_TRUE(d().gets(Want::kExclusive, tid));
    d().abort();
    EXPECT_TRUE(a().gets(Want::kShare, tid));
    EXPECT_TRUE(party->gets(Want::kShare, tid));
    party->abort();
  }
}

TEST_F(LockTest, AThirdIsMeasuredAgainstBothHolders) {
  for (Want first : kWants) {
    for (Want second : kWants) {
      if (conflict(first, second)) continue;
      for (Want third : kWants) {
        SCOPED_TRACE(name(first) + ", " + name(second) + ", then " + name(third));
        Tid tid = committed();
        EXPECT_TRUE(a().gets(first, tid));
        EXPECT_TRUE(b().gets(second, tid));
        EXPECT_EQ(c().gets(third, tid), !conflict(first, third) && !conflict(second, third));
        end_all();
      }
    }
  }
}

// Of two holders either may end first; what the other holds stays.
TEST_F(LockTest, AHolderThatEndsLeavesTheOthersLock) {
  for (Want first : kWants) {
    for (Want second : kWants) {
      if (conflict(first, second)) continue;
      for (bool first_ends : {true, false}) {
        for (Want third : kWants) {
          SCOPED_TRACE(name(first) + ", " + name(second) + (first_ends ? ", first ends" : ", second ends") + ", then " +
                       name(third));
          Tid tid = committed();
          EXPECT_TRUE(a().gets(first, tid));
          EXPECT_TRUE(b().gets(second, tid));
          (first_ends ? a() : b()).abort();
          EXPECT_EQ(c().gets(third, tid), !conflict(first_ends ? second : first, third));
          end_all();
        }
      }
    }
  }
}

// FOR KEY SHARE is compatible with an update of other columns, which others can only see once it is committed.
TEST_F(LockTest, ALockBesideAnUpdateHoldsOnTheNewVersionToo) {
  for (bool lock_first : {true, false}) {
    for (Want third : kWants) {
      SCOPED_TRACE(std::string(lock_first ? "lock, update" : "update, lock") + ", then " + name(third));
      Tid old = committed(), now = old;
      if (lock_first) {
        EXPECT_TRUE(b().gets(Want::kKeyShare, old));
      }
      EXPECT_EQ(a().attempt(Want::kUpdate, now), RowResult::kOk);
      EXPECT_EQ(a().attempt(Want::kUpdate, now), RowResult::kOk);
      if (!lock_first) {
        EXPECT_TRUE(b().gets(Want::kKeyShare, old));
      }
      EXPECT_EQ(a().attempt(Want::kUpdate, now), RowResult::kOk);
      a().commit();
      EXPECT_EQ(c().gets(third, now), !conflict(Want::kKeyShare, third));
      c().abort();
      b().abort();
      EXPECT_TRUE(c().gets(third, now));
      end_all();
    }
  }
}

TEST_F(LockTest, ALockBesideAnUpdateThatIsRolledBackHoldsOnTheOldVersion) {
  for (bool lock_first : {true, false}) {
    SCOPED_TRACE(lock_first);
    Tid old = committed(), now = old;
    if (lock_first) {
      EXPECT_TRUE(b().gets(Want::kKeyShare, old));
    }
    EXPECT_EQ(a().attempt(Want::kUpdate, now), RowResult::kOk);
    if (!lock_first) {
      EXPECT_TRUE(b().gets(Want::kKeyShare, old));
    }
    a().abort();
    EXPECT_FALSE(c().gets(Want::kDelete, old));
    b().abort();
    EXPECT_TRUE(c().gets(Want::kDelete, old));
    end_all();
  }
}

// The version is gone from under the lock: its own transaction deletes what it has updated.
TEST_F(LockTest, FollowingAnUpdateMeetsADeletion) {
  Tid old = committed(), now = old;
  EXPECT_EQ(a().attempt(Want::kUpdate, now), RowResult::kOk);
  EXPECT_EQ(a().attempt(Want::kDelete, now), RowResult::kOk);
  EXPECT_FALSE(b().gets(Want::kKeyShare, old));
  std::thread waiter([&] {
    RowBuffer buffer;
    auto done = b().heap.lock({.tid = old, .command = 9, .mode = RowLock::kKeyShare, .follow = true}, buffer.bytes);
    ASSERT_TRUE(done.ok());
    EXPECT_EQ(done->row.result, RowResult::kDeleted);
  });
  b().worker.waiter().expect_waits(1);
  a().commit();
  waiter.join();
}

TEST_F(LockTest, FollowingAnUpdateThatIsRolledBackEndsAtTheOldVersion) {
  Tid old = committed(), now = old;
  EXPECT_EQ(a().attempt(Want::kUpdate, now), RowResult::kOk);
  a().begin_sub();
  EXPECT_EQ(a().attempt(Want::kUpdateKey, now), RowResult::kOk);
  EXPECT_FALSE(b().gets(Want::kKeyShare, old));
  std::thread waiter([&] {
    RowBuffer buffer;
    auto done = b().heap.lock({.tid = old, .command = 9, .mode = RowLock::kKeyShare, .follow = true}, buffer.bytes);
    ASSERT_TRUE(done.ok());
    EXPECT_EQ(done->row.result, RowResult::kOk);
    EXPECT_EQ(done->tid, old);
  });
  b().worker.waiter().expect_waits(1);
  a().abort();
  waiter.join();
  EXPECT_FALSE(c().gets(Want::kDelete, old));
}

// An update of no key column by a transaction that holds FOR UPDATE goes on excluding FOR KEY SHARE.
TEST_F(LockTest, ForUpdateStaysThroughAnUpdateOfItsOwnTransaction) {
  Tid old = committed(), now = old;
  EXPECT_TRUE(a().gets(Want::kExclusive, old));
  EXPECT_EQ(a().attempt(Want::kUpdate, now), RowResult::kOk);
  EXPECT_FALSE(b().gets(Want::kKeyShare, old));
  a().abort();
  EXPECT_EQ(a().attempt(Want::kUpdate, now = old), RowResult::kOk);
  EXPECT_TRUE(a().gets(Want::kExclusive, now));  // of the version it has made itself
  EXPECT_FALSE(b().gets(Want::kKeyShare, old));
}

TEST_F(LockTest, AnUpgradeWaitsForTheOtherHolders) {
  Tid tid = committed();
  EXPECT_TRUE(a().gets(Want::kShare, tid));
  EXPECT_TRUE(b().gets(Want::kShare, tid));
  EXPECT_FALSE(a().gets(Want::kUpdate, tid));
  EXPECT_FALSE(b().gets(Want::kExclusive, tid));  // neither may
  std::thread upgrade([&] {
    TestRow row("upgraded");
    auto done = a().heap.update({.tid = tid, .row = row.image(), .command = 9});
    ASSERT_TRUE(done.ok());
    EXPECT_EQ(done->row.result, RowResult::kOk);
  });
  a().worker.waiter().expect_waits(1);
  b().commit();
  upgrade.join();
  a().commit();
  EXPECT_EQ(scan_all(c().heap, c().worker.snapshot()), std::vector<std::string>{"upgraded"});
}

TEST_F(LockTest, ADeletionWaitsForOneHolderAfterAnother) {
  Tid tid = committed();
  for (auto* party : {&a(), &b(), &d()}) EXPECT_TRUE(party->gets(Want::kKeyShare, tid));
  std::atomic<bool> gone{false};
  std::thread remover([&] {
    auto done = c().heap.remove(tid, 1);
    ASSERT_TRUE(done.ok());
    EXPECT_EQ(done->result, RowResult::kOk);
    gone.store(true);
  });
  c().worker.waiter().expect_waits(1);  // for a
  d().commit();
  EXPECT_FALSE(gone.load());
  a().commit();
  c().worker.waiter().expect_waits(2);  // for b
  EXPECT_FALSE(gone.load());
  b().commit();
  remover.join();
}

TEST_F(LockTest, ARolledBackSavepointGivesItsLockBackBesideOthers) {
  for (bool beside : {false, true}) {
    SCOPED_TRACE(beside);
    Tid tid = committed();
    if (beside) {
      EXPECT_TRUE(b().gets(Want::kKeyShare, tid));
    }
    a().begin_sub();
    EXPECT_TRUE(a().gets(Want::kNoKeyExclusive, tid));
    EXPECT_FALSE(c().gets(Want::kShare, tid));
    a().rollback_sub();
    EXPECT_TRUE(c().gets(Want::kShare, tid));
    end_all();
  }
}

// heap.lock-falls-to-parent, with the mode that the outer level holds.
TEST_F(LockTest, ARolledBackSavepointLeavesExactlyTheOuterLock) {
  for (bool beside : {false, true}) {
    for (Want inner : kWants) {
      for (Want third : kWants) {
        SCOPED_TRACE(std::string(beside ? "beside another, " : "") + name(inner) + " rolled back, then " + name(third));
        Tid tid = committed();
        bool refused = beside && conflict(inner, Want::kKeyShare);
        if (beside) {
          EXPECT_TRUE(b().gets(Want::kKeyShare, tid));
        }
        EXPECT_TRUE(a().gets(Want::kShare, tid));
        a().begin_sub();
        EXPECT_EQ(a().gets(inner, tid), !refused);
        a().rollback_sub();
        EXPECT_EQ(c().gets(third, tid),
                  !conflict(Want::kShare, third) && !(beside && conflict(Want::kKeyShare, third)));
        // The outer lock is still there when another has come beside it, and its holder may go on.
        EXPECT_FALSE(d().gets(Want::kUpdate, tid));
        c().abort();
        b().abort();
        EXPECT_TRUE(a().gets(Want::kUpdate, tid));
        end_all();
      }
    }
  }
}

// heap.lock-falls-to-parent, with three levels, each with a lock of its own or none: what is rolled back holds nothing.
// What the middle one has released into the outermost is the outermost's.
TEST_F(LockTest, OfNestedSavepointsThoseThatAreRolledBackHoldNothing) {
  constexpr int kNothing = -1;
  std::vector<int> wants{kNothing};
  for (Want want : kWants) wants.push_back(int(want));
  enum End { kInner, kBoth, kInnerThenBoth, kReleasedInner, kReleasedBoth, kMiddleReleasedFirst };
  for (bool beside : {false, true}) {
    for (int outer : {kNothing, int(Want::kKeyShare), int(Want::kShare), int(Want::kNoKeyExclusive)}) {
      for (int middle : wants) {
        for (Want inner : kWants) {
          for (End end : {kInner, kBoth, kInnerThenBoth, kReleasedInner, kReleasedBoth, kMiddleReleasedFirst}) {
            // What was ended or moved is not locked again.
            const auto ends = [](int want) {
              return want == int(Want::kUpdate) || want == int(Want::kUpdateKey) || want == int(Want::kDelete);
            };
            if (ends(middle) || ends(outer)) continue;
            const auto wanted = [](int want) { return want == kNothing ? "nothing" : name(Want(want)); };
            SCOPED_TRACE(std::string(beside ? "beside another, " : "") + wanted(outer) + ", " + wanted(middle) + ", " +
                         name(inner) + ", end " + std::to_string(end));
            Tid tid = committed();
            bool refused = false;
            if (beside) {
              EXPECT_TRUE(b().gets(Want::kKeyShare, tid));
            }
            const auto take = [&](int want) {
              if (want == kNothing) return;
              const bool in_the_way = beside && conflict(Want(want), Want::kKeyShare);
              refused |= in_the_way;
              EXPECT_EQ(a().gets(Want(want), tid), !in_the_way);
            };
            take(outer);
            a().begin_sub(2);
            take(middle);
            if (end == kMiddleReleasedFirst) {
              a().release_sub(2);
              a().begin_sub(2);
            }
            const int level = end == kMiddleReleasedFirst ? 2 : 3;
            if (level == 3) a().begin_sub(3);
            take(int(inner));
            std::vector<int> left{outer};
            switch (end) {
              case kInner:
                a().rollback_sub(3);
                left.push_back(middle);
                break;
              case kBoth:
                a().rollback_sub(3);
                a().rollback_sub(2);
                break;
              case kInnerThenBoth:  // with a new one in between
                a().rollback_sub(3);
                a().begin_sub(3);
                take(int(inner));
                a().rollback_sub(3);
                a().rollback_sub(2);
                break;
              case kReleasedInner:
                a().release_sub(3);
                a().rollback_sub(2);
                break;
              case kReleasedBoth:
                a().rollback_sub(3);
                a().release_sub(2);
                left.push_back(middle);
                break;
              case kMiddleReleasedFirst:
                a().rollback_sub(2);
                left.push_back(middle);
                break;
            }
            if (!refused) {
              for (Want third : kWants) {
                bool kept_out = beside && conflict(Want::kKeyShare, third);
                for (int want : left) kept_out |= want != kNothing && conflict(Want(want), third);
                Tid copy = tid;
                EXPECT_EQ(c().gets(third, copy), !kept_out) << name(third);
                c().abort();
              }
            }
            end_all();
          }
        }
      }
    }
  }
}

TEST_F(LockTest, SixtyHoldersOfOneRowAreAllWaitedForAndCarriedAlong) {
  std::vector<std::unique_ptr<Party>> holders;
  for (int i = 0; i < 60; ++i) holders.push_back(std::make_unique<Party>(engine_, i % 3, relation_));
  Tid tid = committed();
  for (auto& holder : holders) ASSERT_TRUE(holder->gets(Want::kKeyShare, tid));
  for (auto& holder : holders) ASSERT_TRUE(holder->gets(Want::kKeyShare, tid));  // again: they have it
  ASSERT_EQ(a().attempt(Want::kUpdate, tid), RowResult::kOk);
  a().commit();
  for (auto& holder : holders) {
    ASSERT_FALSE(b().gets(Want::kDelete, tid));
    holder->commit();
  }
  EXPECT_TRUE(b().gets(Want::kDelete, tid));
}

TEST_F(LockTest, MoreHoldersThanAPageRecordsGetAnother) {
  constexpr int kRows = 175;
  std::vector<Tid> tids;
  for (int i = 0; i < kRows; ++i) tids.push_back(a().insert("x"));
  a().commit();
  ASSERT_EQ(tids.front().block, tids.back().block);
  for (int round = 0; round < 3; ++round) {
    for (Tid tid : tids)
      for (int p = 0; p < 4; ++p) ASSERT_TRUE(party_[p]->gets(Want::kShare, tid));  // three each in lock pages
    ASSERT_GT(3 * kRows, int(LockPage::kEntries));
    for (int p = 0; p < 4; ++p) {
      for (int i = 0; i < kRows; i += 31) ASSERT_FALSE(e().gets(Want::kUpdate, tids[i]));
      party_[p]->commit();
    }
    for (int i = 0; i < kRows; i += 31) ASSERT_TRUE(e().gets(Want::kExclusive, tids[i]));
    e().commit();
  }
}

TEST_F(LockTest, PlacesOfEndedLocksAreUsedAgain) {
  std::vector<Tid> tids;
  for (int i = 0; i < 40; ++i) tids.push_back(committed());
  auto round = [&](int i) {
    Tid tid = tids[size_t(i) % tids.size()];
    for (int p = 0; p < 3; ++p) ASSERT_TRUE(party_[p]->gets(i % 2 ? Want::kShare : Want::kKeyShare, tid));
    for (int p = 0; p < 3; ++p) p % 2 ? party_[p]->commit() : party_[p]->abort();
  };
  round(0);
  auto before = engine_.cluster().pool(0).free_pages(a().worker.session());
  for (int i = 1; i < gcl_test::by_one_thread(3000); ++i) round(i);
  auto after = engine_.cluster().pool(0).free_pages(a().worker.session());
  EXPECT_EQ(*before, *after);
}

// A version with locks is pruned, another takes its line, and the old holder still runs (heap.flag-validates-cells).
TEST_F(LockTest, ALockOfAVersionThatWasThereBeforeDoesNotCount) {
  Tid tid = committed("v0"), other = committed("w0");
  ASSERT_EQ(a().attempt(Want::kUpdate, tid), RowResult::kOk);
  a().commit();
  Tid locked = tid;  // heap-only: its line becomes free
  EXPECT_TRUE(b().gets(Want::kKeyShare, locked));
  EXPECT_TRUE(c().gets(Want::kKeyShare, locked));
  ASSERT_EQ(a().attempt(Want::kUpdate, tid), RowResult::kOk);
  a().commit();
  uint32_t pruned = 0;
  for (int i = 0; i < gcl_test::kPatienceMs / 5 && pruned < 2; ++i) {  // until the horizon has passed both old versions
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    pruned += *a().heap.prune(locked.block);
  }
  ASSERT_EQ(pruned, 2u);
  while (other != locked) {
    ASSERT_EQ(a().attempt(Want::kUpdate, other), RowResult::kOk);
    a().commit();
    ASSERT_EQ(other.block, locked.block);
    ASSERT_LT(other.offset, 20);
  }
  EXPECT_TRUE(d().gets(Want::kKeyShare, other));
  EXPECT_TRUE(e().gets(Want::kKeyShare, other));
  EXPECT_FALSE(a().gets(Want::kDelete, other));
  d().commit();
  e().commit();
  EXPECT_FALSE(a().gets(Want::kDelete, tid));  // b and c have the new version of what they locked
  EXPECT_TRUE(a().gets(Want::kDelete, other));
}

// `b` has a lock, in the row's word or in a cell, or has none; then `a`, which has one, keeps it waiting
// (heap.holder-skips-queue).
TEST_F(LockTest, AWaiterTakesOneTurnUnlessItHasALock) {
  enum { kInWord, kInCell, kNone };
  for (int has : {kInWord, kInCell, kNone}) {
    Tid tid = committed();
    EXPECT_TRUE(has != kInWord || b().gets(Want::kShare, tid));
    EXPECT_TRUE(a().gets(Want::kShare, tid));
    EXPECT_TRUE(c().gets(Want::kKeyShare, tid));
    EXPECT_TRUE(has != kInCell || b().gets(Want::kShare, tid));
    TestWaiter& waits = b().worker.waiter();
    const int waits_before = waits.waits, queued_before = waits.queued;
    std::thread waiter([&] {
      RowBuffer buffer;
      auto done = b().heap.lock({.tid = tid, .command = 9, .mode = RowLock::kExclusive}, buffer.bytes);
      EXPECT_TRUE(done.ok() && done->row.result == RowResult::kOk);
    });
    waits.expect_waits(waits_before + 1);
    a().commit();
    waits.expect_waits(waits_before + 2);
    c().commit();
    waiter.join();
    EXPECT_EQ(waits.queued - queued_before, has == kNone ? 1 : 0) << has;
    end_all();
  }
}

TEST_F(LockTest, ADroppedRelationGivesItsLockPagesBack) {
  auto& session = a().worker.session();
  auto before = engine_.cluster().pool(0).free_pages(session);
  auto made = Heap::create(a().worker.txns());
  ASSERT_TRUE(made.ok());
  {
    Party one(engine_, 0, *made), two(engine_, 1, *made);
    for (int i = 0; i < 300; ++i) {
      Tid tid = one.insert(std::string(500, 'x'));
      one.commit();
      ASSERT_TRUE(one.gets(Want::kShare, tid));
      ASSERT_TRUE(two.gets(Want::kShare, tid));
    }
  }
  ASSERT_TRUE(Heap::drop(a().worker.txns(), *made).ok());
  EXPECT_EQ(*before, *engine_.cluster().pool(0).free_pages(session));
}

}  // namespace engine_test

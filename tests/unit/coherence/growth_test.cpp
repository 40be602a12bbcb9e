// A memory node is added to a pool, with and without nodes in it; what is refused leaves nothing behind.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <filesystem>

#include "cluster.hpp"
#include "coherence/region/checksums.hpp"
#include "coherence/region/memory_file.hpp"
#include "tests/support/pool_bytes.hpp"

namespace coherence {

namespace fs = std::filesystem;

class Growth : public ClusterTest {
 protected:
  static constexpr uint64_t kBytes = kPages * kPageSize;
  MemoryNodeId grow(uint64_t bytes = kBytes) {
    auto added = LocalPool::add_memory_node(files(), bytes, &problem);
    EXPECT_TRUE(added.ok() && added->saved) << problem.text;
    return added.ok() ? added->memory_node : MemoryNodeId{0xff};
  }
  void grow_unsaved(const char* why) {
    auto added = LocalPool::add_memory_node(files(), kBytes, &problem);
    EXPECT_TRUE(added.ok() && !added->saved);
    EXPECT_NE(strstr(problem.text, why), nullptr) << problem.text;
    EXPECT_EQ(LocalPool::inspect(files(), &problem), LocalPool::Condition::kUnsaved);
  }
  void expect_refused(Errc error, const char* why, uint64_t bytes = kBytes) {
    auto added = LocalPool::add_memory_node(files(), bytes, &problem);
    EXPECT_EQ(added.ok() ? Errc::kOk : added.error(), error) << problem.text;
    EXPECT_NE(strstr(problem.text, why), nullptr) << problem.text;
  }
  void write(TestNode& node, Session& session, PageId p, uint64_t value) {
    Line& l = node.line(session, p);
    ASSERT_TRUE(session.lock_exclusive(l, p).ok());
    write_word(*node.node, l, value);
    session.unlock_exclusive(l);
  }
  uint64_t read(TestNode& node, Session& session, PageId p) {
    Line& l = node.line(session, p);
    EXPECT_TRUE(session.lock_shared(l, p).ok());
    const uint64_t value = read_word(*node.node, l);
    session.unlock_shared(l);
    return value;
  }
  void leave(TestNode& node, Errc expected = Errc::kOk) {
    node.stop();
    Session session(*node.node, SessionId{0}, nullptr);
    bool last = false;
    Status left = node.node->leave(session, &last, &problem);
    EXPECT_EQ(left.ok() ? Errc::kOk : left.error(), expected) << problem.text;
  }
  // Node 0 joins, changes a page, and leaves as the last one.
  void change_and_leave(PageId p, uint64_t value, Errc expected = Errc::kOk) {
    {
      TestNode& node = add_node(16, false);
      Session session(*node.node, SessionId{0}, nullptr);
      write(node, session, p, value);
    }
    leave(*nodes.back(), expected);
    nodes.clear();
  }
  uint64_t word_of(PageId p) {
    uint64_t word;
    memcpy(&word, gcl_test::pool_bytes(*pool, p), 8);
    return word;
  }
  void reopen() {
    nodes.clear();
    pool.reset();
    auto opened = LocalPool::open(files(), &problem);
    ASSERT_TRUE(opened.ok()) << problem.text;
    pool = opened.take();
  }
  void lose_tmpfs() {
    pool.reset();
    for (const char* part : {"", ".mem1", ".mem2", ".mem3"}) fs::remove(path + part);
  }
  Problem problem;
};

TEST_F(Growth, NodesThatAreInThePoolUseANewMemoryNode) {
  TestNode &a = add_node(), &b = add_node();
  {
    Session sa(*a.node, SessionId{0}, nullptr), sb(*b.node, SessionId{0}, nullptr);
    EXPECT_FALSE(pool->has(page(5, 2)));
    EXPECT_EQ(grow(), MemoryNodeId{2});
    EXPECT_EQ(pool->memory_nodes(), 3u);
    EXPECT_TRUE(pool->has(page(5, 2)));
    EXPECT_FALSE(pool->has(page(kPages, 2)));
    EXPECT_FALSE(pool->has(page(5, 3)));
    EXPECT_EQ(pool->pages(), 3 * kPages);
    for (uint64_t i = 0; i < 8; ++i) write(a, sa, page(i, 2), 100 + i);
    for (uint64_t i = 0; i < 8; ++i) EXPECT_EQ(read(b, sb, page(i, 2)), 100 + i);
    for (uint64_t i = 0; i < 4; ++i) write(b, sb, page(i, 2), 200 + i);
    EXPECT_EQ(read(a, sa, page(3, 2)), 203u);
    EXPECT_EQ(read(a, sa, page(7, 2)), 107u);
  }
  struct stat file;
  ASSERT_EQ(stat((path + ".mem2").c_str(), &file), 0);
  EXPECT_EQ(file.st_blocks * 512, file.st_size) << "allocated in full";
  EXPECT_FALSE(fs::exists(path + ".growing"));
  leave(a), leave(b);  // and the last one saves it
  for (const bool after_a_reboot : {false, true}) {
    if (after_a_reboot) lose_tmpfs();
    reopen();
    EXPECT_EQ(pool->memory_nodes(), 3u);
    EXPECT_EQ(word_of(page(3, 2)), 203u);
  }
}

TEST_F(Growth, ACleanPoolAndItsDurableCopyGrowTogether) {
  EXPECT_EQ(grow(), MemoryNodeId{2});
  EXPECT_EQ(LocalPool::inspect(files(), &problem), LocalPool::Condition::kClean) << problem.text;
  lose_tmpfs();
  EXPECT_EQ(LocalPool::inspect(files(), &problem), LocalPool::Condition::kClean) << problem.text;
  reopen();
  EXPECT_TRUE(pool->has(page(5, 2)));
  lose_tmpfs();
  EXPECT_EQ(grow(), MemoryNodeId{3}) << "loaded first";
  reopen();
  EXPECT_EQ(pool->pages(), 4 * kPages);
}

// pool.failed-save-harmless.  A directory in the new file's place stands for a disk that is full.
TEST_F(Growth, WhatCannotBeSavedIsInThePoolAndSavedLater) {
  fs::create_directory(durable + ".next.mem2");
  grow_unsaved(".next.mem2");
  const std::string kept = path + ".kept";  // a reboot at this moment finds the copy as it was
  for (const char* part : {"", ".mem1", ".mem2"}) fs::rename(path + part, kept + part);
  reopen();
  EXPECT_EQ(pool->memory_nodes(), 2u);
  for (const char* part : {"", ".mem1", ".mem2"}) fs::rename(kept + part, path + part);
  fs::remove(durable + ".next.mem2");
  EXPECT_TRUE(LocalPool::save_again(files(), &problem).ok()) << problem.text;
  EXPECT_EQ(LocalPool::inspect(files(), &problem), LocalPool::Condition::kClean) << problem.text;
  lose_tmpfs();
  reopen();
  EXPECT_EQ(pool->memory_nodes(), 3u);
}

// pool.grown-copy-completed.  The files of the other memory nodes are of the save before: the new one's alone would not
// make a copy.
TEST_F(Growth, APoolWhoseLastSaveFailedIsSavedWhole) {
  change_and_leave(page(5, 1), 1);
  fs::create_directory(durable + ".next.mem1");
  change_and_leave(page(5, 1), 2, Errc::kSystem);
  EXPECT_EQ(LocalPool::inspect(files(), &problem), LocalPool::Condition::kUnsaved);
  fs::remove(durable + ".next.mem1");
  grow();
  EXPECT_EQ(LocalPool::inspect(files(), &problem), LocalPool::Condition::kClean) << problem.text;
  lose_tmpfs();
  ASSERT_NO_FATAL_FAILURE(reopen());
  EXPECT_EQ(pool->memory_nodes(), 3u);
  EXPECT_EQ(word_of(page(5, 1)), 2u);
}

TEST_F(Growth, AMemoryNodeThatWasNotSavedIsSavedWithTheNext) {
  fs::create_directory(durable + ".next.mem2");
  grow_unsaved(".next.mem2");
  fs::remove(durable + ".next.mem2");
  EXPECT_EQ(grow(), MemoryNodeId{3});
  EXPECT_EQ(LocalPool::inspect(files(), &problem), LocalPool::Condition::kClean) << problem.text;
  lose_tmpfs();
  ASSERT_NO_FATAL_FAILURE(reopen());
  EXPECT_EQ(pool->pages(), 4 * kPages);
}

// A machine that goes down while a pool is saved again still finds the copy that was whole before.
TEST_F(Growth, ACopyThatLacksAMemoryNodeStaysWholeWhileItIsSavedAgain) {
  change_and_leave(page(5, 1), 7);
  fs::create_directory(durable + ".next.mem2");
  grow_unsaved(".next.mem2");
  fs::remove(durable + ".next.mem2");
  fs::create_directory(durable + ".next.new");  // memory node 0's, the last one's, is not replaced
  EXPECT_EQ(LocalPool::save_again(files(), &problem).error(), Errc::kSystem) << problem.text;
  EXPECT_FALSE(fs::exists(durable + ".mem2"));
  grow_unsaved(".durable.next.new");
  EXPECT_FALSE(fs::exists(durable + ".mem3"));
  fs::remove(durable + ".next.new");
  lose_tmpfs();
  ASSERT_NO_FATAL_FAILURE(reopen());
  EXPECT_EQ(pool->memory_nodes(), 2u);
  EXPECT_EQ(word_of(page(5, 1)), 7u);
}

// Power is lost when the grown copy counts, and is not in its place: the copy before it is loaded
// (pool.placed-before-used).
TEST_F(Growth, AGrownCopyThatMemoryHasLostIsNone) {
  const std::string before = path + ".before", next = durable + ".next";
  for (const char* part : {"", ".mem1"}) fs::copy_file(durable + part, before + part);
  grow();
  for (const char* part : {"", ".mem2"}) fs::rename(durable + part, next + part);
  for (const char* part : {"", ".mem1"}) fs::rename(before + part, durable + part);
  lose_tmpfs();
  ASSERT_NO_FATAL_FAILURE(reopen());
  EXPECT_EQ(pool->memory_nodes(), 2u);
  add_node(16, false);
  EXPECT_FALSE(fs::exists(next)) << "or it would count when the pool has grown again";
  nodes.clear();
  lose_tmpfs();
  bool whole = true;
  EXPECT_TRUE(LocalPool::begin_restart(files(), &whole, &problem).ok()) << problem.text;
  EXPECT_FALSE(whole);
}

// Else a process that dies while it grows leaves a copy of the last save that lacks the new memory node, and the copy's
// place would be taken for that of the grown pool.
TEST_F(Growth, ACopyThatCountsTakesItsPlaceBeforeThePoolGrows) {
  const std::string before = path + ".before", next = durable + ".next";
  add_node(16, false);
  for (const char* part : {"", ".mem1"}) fs::copy_file(durable + part, before + part);
  leave(*nodes.back());
  nodes.clear();
  for (const char* part : {"", ".mem1"}) {
    fs::rename(durable + part, next + part);
    fs::rename(before + part, durable + part);
  }
  fs::create_directory(next + ".mem2");  // it dies when the memory node is counted
  grow_unsaved(".next.mem2");
  fs::remove(next + ".mem2");
  const auto saved = outline_pool(durable.c_str(), &problem);
  ASSERT_TRUE(saved.ok()) << problem.text;
  EXPECT_EQ(saved->saves, pool->saves());
  add_node(16, false);
  nodes.clear();
  lose_tmpfs();
  bool whole = true;
  EXPECT_TRUE(LocalPool::begin_restart(files(), &whole, &problem).ok()) << problem.text;
  EXPECT_FALSE(whole);
  const auto made = outline_pool((path + ".restart").c_str(), &problem);
  ASSERT_TRUE(made.ok()) << problem.text;
  EXPECT_EQ(made->memory_nodes, 3u) << "the journal has it still";
}

TEST_F(Growth, ACopyWithoutOneOfItsFilesIsNoneThatSaves) {
  fs::remove(durable + ".mem1");
  EXPECT_EQ(LocalPool::inspect(files(), &problem), LocalPool::Condition::kUnsaved);
  EXPECT_NE(strstr(problem.text, ".durable.mem1"), nullptr) << problem.text;
  grow();
  EXPECT_EQ(LocalPool::inspect(files(), &problem), LocalPool::Condition::kClean) << problem.text;
  lose_tmpfs();
  ASSERT_NO_FATAL_FAILURE(reopen());
  EXPECT_EQ(pool->pages(), 3 * kPages);
}

TEST_F(Growth, AToolIsToldHowLargeThePoolIs) {
  grow(2 * kBytes);
  for (const std::string& first : {path, durable}) {
    auto said = outline_pool(first.c_str(), &problem);
    ASSERT_TRUE(said.ok()) << problem.text;
    EXPECT_EQ(said->pool_id, pool->pool_id());
    EXPECT_EQ(said->memory_nodes, 3u);
    for (uint32_t k = 0; k < 3; ++k)
      EXPECT_EQ(first == path ? said->bytes[k] : saved_bytes(said->bytes[k]),
                fs::file_size(MemoryPath(first.c_str(), k).text));
  }
  EXPECT_EQ(outline_pool((path + "-none").c_str(), &problem).error(), Errc::kNotFound);
  EXPECT_EQ(outline_pool((path + ".mem1").c_str(), &problem).error(), Errc::kCorrupt);
}

TEST_F(Growth, AFullTableTakesNoMore) {
  while (pool->memory_nodes() < uint32_t(kMemoryNodesMax)) grow(kPageSize);
  expect_refused(Errc::kTooLarge, "has 64 memory nodes");
  EXPECT_EQ(pool->memory_nodes(), 64u);
  EXPECT_TRUE(pool->has(page(0, 63)));
  EXPECT_FALSE(pool->has(page(0, 64)));
  EXPECT_FALSE(fs::exists(path + ".growing"));
  EXPECT_FALSE(fs::exists(path + ".mem64"));
}

TEST_F(Growth, WithoutTheMemoryForItNothingIsAdded) {
  add_node(16, false);
  expect_refused(Errc::kNoSpace, "cannot allocate", uint64_t{1} << 46);
  EXPECT_EQ(pool->memory_nodes(), 2u);
  EXPECT_FALSE(fs::exists(path + ".growing"));
  EXPECT_FALSE(fs::exists(path + ".mem2"));
  EXPECT_EQ(grow(), MemoryNodeId{2});
}

TEST_F(Growth, OneIsAddedAtATime) {
  const std::string growing = path + ".growing";
  {
    File other(::open(growing.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));  // of a process that fills the disk
    ASSERT_EQ(flock(other.fd(), LOCK_EX), 0);
    expect_refused(Errc::kBusy, "is being added");
    EXPECT_TRUE(fs::exists(growing)) << "it is the other's";
  }
  EXPECT_EQ(grow(), MemoryNodeId{2}) << "the growing process died";
  std::atomic<int> added{0}, busy{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 4; ++i) {
        Problem why;
        auto one = LocalPool::add_memory_node(files(), kBytes, &why);
        added += one.ok();
        busy += !one.ok() && one.error() == Errc::kBusy;
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(added + busy, 16);
  EXPECT_EQ(pool->memory_nodes(), 3u + unsigned(added.load()));
  reopen();
  EXPECT_EQ(pool->pages(), (3u + unsigned(added.load())) * kPages) << "all are whole, and in their places";
}

TEST_F(Growth, AFencedPoolOrNoneIsRefused) {
  const std::string none = path + "-none";
  EXPECT_EQ(LocalPool::add_memory_node({none.c_str(), nullptr, ""}, kBytes, &problem).error(), Errc::kNotFound);
  EXPECT_FALSE(fs::exists(none + ".growing"));
  add_node(16, false).node->fence("somebody died");
  expect_refused(Errc::kFenced, "somebody died");
  EXPECT_FALSE(fs::exists(path + ".mem2"));
}

// The next process that opens the pool gives its memory back.
TEST_F(Growth, NothingIsLeftOfADeadAdder) {
  const std::string growing = path + ".growing", uncounted = path + ".mem2";
  add_node();
  {
    File other(::open(growing.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
    ASSERT_EQ(flock(other.fd(), LOCK_EX), 0);
    EXPECT_EQ(LocalPool::inspect(files(), &problem), LocalPool::Condition::kInUse);
    EXPECT_TRUE(fs::exists(growing)) << "the growing process lives";
  }
  fs::copy_file(path + ".mem1", uncounted);  // this one died between the name and the count
  EXPECT_EQ(LocalPool::inspect(files(), &problem), LocalPool::Condition::kInUse);
  EXPECT_FALSE(fs::exists(growing));
  EXPECT_FALSE(fs::exists(uncounted));
  EXPECT_EQ(pool->memory_nodes(), 2u);
  EXPECT_TRUE(fs::exists(path + ".mem1"));
  fs::copy_file(path + ".mem1", uncounted);
  EXPECT_EQ(grow(), MemoryNodeId{2});
  EXPECT_TRUE(pool->has(page(5, 2)));
}

TEST_F(Growth, AMemoryNodeThatIsLostIsAnErrorAndNotNone) {
  grow();
  fs::rename(path + ".mem2", path + ".elsewhere");
  EXPECT_EQ(pool->look_for(page(5, 2)).error(), Errc::kCorrupt);
  EXPECT_EQ(pool->look_for(page(5, 3)).error(), Errc::kNotFound);
  fs::rename(path + ".elsewhere", path + ".mem2");
  EXPECT_TRUE(pool->look_for(page(5, 2)).ok());
}

}  // namespace coherence

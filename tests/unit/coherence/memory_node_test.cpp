// The files of a pool of several memory nodes: what is missing, foreign or of another save is never taken for the pool.
#include <fcntl.h>
#include <sys/stat.h>

#include <filesystem>

#include "cluster.hpp"
#include "coherence/region/pool_header.hpp"
#include "tests/support/pool_bytes.hpp"

namespace coherence {

namespace fs = std::filesystem;

class MemoryNodes : public ClusterTest {
 protected:
  // Node 0 joins, changes a page of each memory node, and leaves as the last one.
  void change_and_leave(uint64_t value) {
    TestNode& n = add_node(16, false);
    Session s(*n.node, SessionId{0}, nullptr);
    for (uint8_t m = 0; m < 2; m++) {
      Line& l = n.line(s, page(7, m));
      ASSERT_TRUE(s.lock_exclusive(l, page(7, m)).ok());
      write_word(*n.node, l, value + m);
      s.unlock_exclusive(l);
    }
    bool last = false;
    ASSERT_TRUE(n.node->leave(s, &last, &problem).ok()) << problem.text;
    EXPECT_TRUE(last);
  }
  void close() {
    nodes.clear();
    pool.reset();
  }
  void expect_words(uint64_t value) {
    auto opened = LocalPool::open(files(), &problem);
    ASSERT_TRUE(opened.ok()) << problem.text;
    pool = opened.take();
    for (uint8_t m = 0; m < 2; m++) {
      uint64_t word;
      memcpy(&word, gcl_test::pool_bytes(*pool, page(7, m)), 8);
      EXPECT_EQ(word, value + m);
    }
  }
  // `what` is wrong with the pool: no process opens it, and every way of asking says so.
  void expect_damaged(const char* what) {
    EXPECT_EQ(LocalPool::open(files(), &problem).error(), Errc::kCorrupt);
    EXPECT_NE(strstr(problem.text, what), nullptr) << problem.text;
    EXPECT_EQ(LocalPool::inspect(files(), &problem), LocalPool::Condition::kDamaged);
    EXPECT_NE(strstr(problem.text, what), nullptr) << problem.text;
  }
  void lose_tmpfs() {
    fs::remove(path);
    fs::remove(path + ".mem1");
  }
  static void set_header(const std::string& file, size_t offset, uint64_t value, size_t bytes) {
    int fd = ::open(file.c_str(), O_RDWR);
    ASSERT_GE(fd, 0);
    EXPECT_EQ(pwrite(fd, &value, bytes, off_t(offset)), ssize_t(bytes));
    ::close(fd);
  }
  Problem problem;
};

TEST_F(MemoryNodes, EachIsAFileOfItsOwnAllocatedInFull) {
  for (const std::string& file : {path, path + ".mem1"}) {
    struct stat s;
    ASSERT_EQ(stat(file.c_str(), &s), 0);
    EXPECT_GE(uint64_t(s.st_blocks) * 512, kPages * kPageSize);
    EXPECT_EQ(s.st_blocks * 512, s.st_size);
  }
  EXPECT_EQ(pool->memory_nodes(), 2u);
  EXPECT_EQ(pool->pages(), 2 * kPages);
  std::byte* zero = gcl_test::pool_bytes(*pool, page(0, 0));
  std::byte* one = gcl_test::pool_bytes(*pool, page(0, 1));
  EXPECT_GT(std::abs(one - zero), ptrdiff_t(kPages * kPageSize));
  EXPECT_EQ(pool->latch_address(page(5, 1)).node(), MemoryNodeId{1});
}

TEST_F(MemoryNodes, APageThatThePoolDoesNotHaveIsNone) {
  EXPECT_TRUE(pool->has(page(kPages - 1, 1)));
  EXPECT_FALSE(pool->has(page(kPages, 1)));
  EXPECT_FALSE(pool->has(page(0, 2)));
  EXPECT_FALSE(pool->has(page(0, 255)));
  EXPECT_FALSE(pool->has(PageId{}));
  EXPECT_FALSE(pool->has(PageId{page(5).raw | uint64_t{1} << 48})) << "else page 5 would have two frames";
}

TEST_F(MemoryNodes, ACleanPoolSurvivesARebootWhole) {
  change_and_leave(4711);
  close();
  expect_words(4711);  // from tmpfs
  close();
  lose_tmpfs();
  EXPECT_EQ(LocalPool::inspect(files(), &problem), LocalPool::Condition::kClean) << problem.text;
  expect_words(4711);  // from the durable copy
  close();
  EXPECT_TRUE(fs::exists(path + ".mem1"));
  fs::remove(path);  // half of tmpfs is lost: all of it comes from the durable copy
  expect_words(4711);
}

TEST_F(MemoryNodes, AMissingFileIsNamed) {
  change_and_leave(1);
  close();
  fs::remove(path + ".mem1");
  expect_damaged("memory node 1 of pool");
  lose_tmpfs();
  fs::remove(durable + ".mem1");
  expect_damaged(".durable.mem1");
  EXPECT_FALSE(fs::exists(path)) << "nothing was loaded";
}

TEST_F(MemoryNodes, AFileCutShortIsRefused) {
  change_and_leave(1);
  close();
  fs::resize_file(path + ".mem1", fs::file_size(path + ".mem1") - 4096);
  expect_damaged("shorter than it must be");
  lose_tmpfs();
  fs::resize_file(durable + ".mem1", fs::file_size(durable + ".mem1") - 4096);
  expect_damaged("shorter than it must be");
  fs::resize_file(durable + ".mem1", 100);
  expect_damaged("not a memory node");
}

TEST_F(MemoryNodes, AnotherPoolsFileIsRefused) {
  const std::string other = path + "-other";
  PoolSpec spec{.memory_nodes = 3, .compatibility = "version=15\nlocale=C\n"};
  spec.region_bytes[kRegionPages] = spec.further_pages_bytes = kPages * kPageSize;
  ASSERT_TRUE(LocalPool::create({other.c_str(), nullptr, ""}, spec, &problem).ok()) << problem.text;
  close();
  fs::copy_file(other + ".mem1", path + ".mem1", fs::copy_options::overwrite_existing);
  expect_damaged("another pool");
  // And a file of the right pool in the wrong place.
  fs::copy_file(other + ".mem2", other + ".mem1", fs::copy_options::overwrite_existing);
  EXPECT_EQ(LocalPool::open({other.c_str(), nullptr, ""}, &problem).error(), Errc::kCorrupt);
  EXPECT_NE(strstr(problem.text, "memory node 2"), nullptr) << problem.text;
  EXPECT_EQ(LocalPool::open({(other + ".mem1").c_str(), nullptr, ""}, &problem).error(), Errc::kCorrupt);
  EXPECT_NE(strstr(problem.text, "not a pool"), nullptr) << problem.text;
}

// Every moment at which saving can be cut off by a power failure: some files are of this save, some of the one before.
TEST_F(MemoryNodes, ACrashWhileSavingNeverYieldsAMixThatIsTakenForClean) {
  const std::string before = path + "-before";
  auto keep = [&](const char* suffix) {
    fs::copy_file(durable + suffix, before + suffix, fs::copy_options::overwrite_existing);
  };
  change_and_leave(100);
  keep(".mem1");
  nodes.clear();
  add_node(16, false);  // the pool is in use again: that mark reached the disk
  keep("");
  {
    Session s(*nodes[0]->node, SessionId{0}, nullptr);
    bool last = false;
    ASSERT_TRUE(nodes[0]->node->leave(s, &last, &problem).ok()) << problem.text;
  }
  nodes.clear();
  change_and_leave(200);
  close();
  lose_tmpfs();
  auto put = [&](bool zero_old, bool one_old) {
    fs::copy_file(durable, path + "-z", fs::copy_options::overwrite_existing);
    fs::copy_file(durable + ".mem1", path + "-o", fs::copy_options::overwrite_existing);
    if (zero_old) fs::copy_file(before, durable, fs::copy_options::overwrite_existing);
    if (one_old) fs::copy_file(before + ".mem1", durable + ".mem1", fs::copy_options::overwrite_existing);
  };
  auto back = [&] {
    fs::copy_file(path + "-z", durable, fs::copy_options::overwrite_existing);
    fs::copy_file(path + "-o", durable + ".mem1", fs::copy_options::overwrite_existing);
  };
  put(true, true);  // nothing renamed yet
  EXPECT_EQ(LocalPool::open(files(), &problem).error(), Errc::kFenced) << problem.text;
  back();
  put(true, false);  // memory node 1 renamed
  EXPECT_EQ(LocalPool::open(files(), &problem).error(), Errc::kFenced) << problem.text;
  // Were the mark lost, too, the numbers of the saves would tell.
  set_header(durable, offsetof(PoolHeader, state), uint64_t(PoolState::kClean), 4);
  expect_damaged("another save");
  back();
  put(false, true);  // the order that save() does not use
  expect_damaged("another save");
  back();
  expect_words(200);
}

// save() itself: memory node 0's file is replaced last, when the others have their names.
TEST_F(MemoryNodes, MemoryNodeZeroIsSavedLast) {
  TestNode& n = add_node(16, false);
  fs::remove(durable + ".mem1");
  fs::create_directory(durable + ".mem1");  // cannot be replaced by a file
  {
    Session s(*n.node, SessionId{0}, nullptr);
    bool last = false;
    EXPECT_EQ(n.node->leave(s, &last, &problem).error(), Errc::kSystem);
    EXPECT_NE(strstr(problem.text, ".mem1"), nullptr) << problem.text;
  }
  close();
  fs::remove(durable + ".mem1");
  lose_tmpfs();
  EXPECT_EQ(LocalPool::open(files(), &problem).error(), Errc::kFenced) << "the durable copy still says: in use";
  bool whole = false;  // pool.saved-beside
  EXPECT_TRUE(LocalPool::begin_restart(files(), &whole, &problem).ok()) << problem.text;
  EXPECT_TRUE(whole);
  EXPECT_TRUE(LocalPool::open(files(), &problem).ok()) << problem.text;
  EXPECT_FALSE(fs::exists(durable + ".next.mem1"));
}

// pool.failed-save-harmless.  A directory in the new file's place stands for a disk that is full.
TEST_F(MemoryNodes, ASaveThatFailsCostsNothingWhileTheMachineIsUp) {
  auto leave = [&](uint64_t value, Errc expected) {
    TestNode& n = add_node(16, false);
    {
      Session s(*n.node, SessionId{0}, nullptr);
      Line& l = n.line(s, page(7, 1));
      ASSERT_TRUE(s.lock_exclusive(l, page(7, 1)).ok());
      write_word(*n.node, l, value);
      s.unlock_exclusive(l);
      EXPECT_EQ(LocalPool::save_again(files(), &problem).error(), Errc::kBusy);
      bool last = false;
      EXPECT_EQ(n.node->leave(s, &last, &problem).error(), expected) << problem.text;
      EXPECT_TRUE(last);
    }
    close();
  };
  auto word = [&] {
    auto opened = LocalPool::open(files(), &problem);
    EXPECT_TRUE(opened.ok()) << problem.text;
    pool = opened.take();
    uint64_t value;
    memcpy(&value, gcl_test::pool_bytes(*pool, page(7, 1)), 8);
    return value;
  };
  fs::create_directory(durable + ".next.new");
  leave(1, Errc::kSystem);
  EXPECT_EQ(LocalPool::inspect(files(), &problem), LocalPool::Condition::kUnsaved);
  EXPECT_NE(strstr(problem.text, "its last save failed"), nullptr) << problem.text;
  EXPECT_EQ(word(), 1u);
  leave(2, Errc::kSystem);  // it can be used again meanwhile
  EXPECT_EQ(LocalPool::save_again(files(), &problem).error(), Errc::kSystem);
  EXPECT_NE(strstr(problem.text, "cannot create pool file"), nullptr) << problem.text;
  EXPECT_EQ(LocalPool::inspect(files(), &problem), LocalPool::Condition::kUnsaved);
  fs::remove(durable + ".next.new");
  EXPECT_TRUE(LocalPool::save_again(files(), &problem).ok()) << problem.text;
  EXPECT_EQ(LocalPool::inspect(files(), &problem), LocalPool::Condition::kClean) << problem.text;
  lose_tmpfs();
  EXPECT_EQ(word(), 2u);
}

// What tools say of a pool they cannot use is why, and never that it is clean or gone.
TEST_F(MemoryNodes, AToolIsToldWhatIsWrong) {
  change_and_leave(1);
  close();
  set_header(path, offsetof(PoolHeader, format_version), 2, 4);
  EXPECT_EQ(LocalPool::inspect(files(), &problem), LocalPool::Condition::kForeign);
  EXPECT_NE(strstr(problem.text, "format version 2"), nullptr) << problem.text;
  set_header(path, offsetof(PoolHeader, format_version), kPoolFormatVersion, 4);
  set_header(path, offsetof(PoolHeader, block_size), 4096, 4);
  EXPECT_EQ(LocalPool::inspect(files(), &problem), LocalPool::Condition::kForeign);
  EXPECT_NE(strstr(problem.text, "4096"), nullptr) << problem.text;
  set_header(path, offsetof(PoolHeader, block_size), kPageSize, 4);
  EXPECT_EQ(LocalPool::inspect(files(), &problem), LocalPool::Condition::kClean) << problem.text;
  fs::resize_file(path, fs::file_size(path) - 4096);
  expect_damaged("shorter than it must be");
  fs::resize_file(path, 100);
  expect_damaged("is not a pool");
}

TEST_F(MemoryNodes, APoolThatDoesNotFitLeavesNoFile) {
  const std::string big = path + "-big";
  PoolSpec spec{.memory_nodes = 3, .compatibility = ""};
  spec.region_bytes[kRegionPages] = uint64_t{1} << 46;
  spec.further_pages_bytes = kPages * kPageSize;  // these fit, and were there before memory node 0 was asked for
  EXPECT_FALSE(LocalPool::create({big.c_str(), nullptr, ""}, spec, &problem).ok());
  for (const char* name : {"", ".new", ".mem1", ".mem1.new", ".mem2", ".mem2.new"})
    EXPECT_FALSE(fs::exists(big + name));
  spec.memory_nodes = 65;
  EXPECT_EQ(LocalPool::create({big.c_str(), nullptr, ""}, spec, &problem).error(), Errc::kIncompatible);
}

TEST_F(MemoryNodes, APoolOfAnotherFormatIsRefusedBeforeItIsLoaded) {
  change_and_leave(1);
  close();
  lose_tmpfs();
  set_header(durable, offsetof(PoolHeader, format_version), 1, 4);
  EXPECT_EQ(LocalPool::open(files(), &problem).error(), Errc::kIncompatible);
  EXPECT_NE(strstr(problem.text, "format version 1"), nullptr) << problem.text;
  EXPECT_FALSE(fs::exists(path));
}

}  // namespace coherence

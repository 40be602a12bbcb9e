// A pool that memory has lost while it was in use is made again beside it, whatever process dies meanwhile
// (pool.made-beside).
#include <fcntl.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "cluster.hpp"
#include "coherence/region/memory_file.hpp"
#include "coherence/region/pool_header.hpp"
#include "coherence/region/pool_journal.hpp"
#include "tests/support/pool_bytes.hpp"

namespace coherence {

namespace fs = std::filesystem;

// A pool of three memory nodes that was saved with kOld in a page of each, joined then, and lost by memory.
class PoolRestart : public ClusterTest {
 protected:
  static constexpr uint32_t kKind = 16;  // of an entry; coherence has none like it
  static constexpr uint32_t kParts = 3;
  static constexpr std::byte kOld{0x55}, kNew{0x77};
  static constexpr uint64_t kIncarnations = 1000;  // as logs say

  void SetUp() override {
    ClusterTest::SetUp();
    made = path + ".restart", made_copy = durable + ".next";
    ASSERT_TRUE(LocalPool::add_memory_node(files(), kPages * kPageSize, &problem).ok()) << problem.text;
    fill(*pool, kOld);
    ASSERT_TRUE(LocalPool::save_again(files(), &problem).ok()) << problem.text;
    lost_saves = pool->saves();
    add_node(16, false);
    note();
    nodes.clear();
    lose_memory();
    copy = contents_of(durable);
    journal = contents(BesideCopy(durable.c_str(), BesideCopy::kJournal).text);
    ASSERT_FALSE(journal.empty());
  }
  void note() {
    auto opened = PoolJournal::open(*pool, PoolJournal::kTry, &problem);
    ASSERT_TRUE(opened.ok() && (*opened)->append(kKind, {}, &problem).ok()) << problem.text;
  }
  // A reboot.
  void lose_memory() {
    pool.reset();
    const std::string kept = fs::path(durable).filename();
    std::vector<fs::path> lost;
    for (const fs::path& file : left_of(path))
      if (!file.filename().string().starts_with(kept)) lost.push_back(file);
    for (const fs::path& file : lost) fs::remove(file);
  }
  static std::vector<fs::path> left_of(const std::string& prefix) {
    std::vector<fs::path> found;
    for (const auto& entry : fs::directory_iterator(fs::path(prefix).parent_path()))
      if (entry.path().string().starts_with(prefix)) found.push_back(entry.path());
    return found;
  }
  static std::string contents(const fs::path& file) {
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static void set_contents(const fs::path& file, const std::string& all) {
    std::ofstream(file, std::ios::binary | std::ios::trunc) << all;
  }
  static fs::path part(const std::string& of, uint32_t k) { return MemoryPath(of.c_str(), k).text; }
  using Contents = std::map<uint32_t, std::string>;
  static Contents contents_of(const std::string& of) {
    Contents all;
    for (uint32_t k = 0; k < kParts; k++) all[k] = contents(part(of, k));
    return all;
  }
  static PageId one_of(uint32_t k) { return page(7 + k, uint8_t(k)); }
  static void fill(Pool& pool, std::byte value) {
    for (uint32_t k = 0; k < kParts; k++) memset(gcl_test::pool_bytes(pool, one_of(k)), int(value), kPageSize);
  }
  void expect_pages(const PoolFiles& of, std::byte value, const std::string& when) {
    auto opened = LocalPool::open(of, &problem);
    ASSERT_TRUE(opened.ok()) << when << ": " << problem.text;
    for (uint32_t k = 0; k < kParts; k++) {
      EXPECT_EQ(*gcl_test::pool_bytes(**opened, one_of(k)), value) << when << ": memory node " << k;
      EXPECT_EQ(gcl_test::pool_bytes(**opened, one_of(k))[kPageSize - 1], value) << when << ": memory node " << k;
    }
  }
  PoolFiles made_files() const { return {made.c_str(), nullptr, files().compatibility}; }
  bool begin(const std::string& when = "") {
    bool whole = false;
    EXPECT_TRUE(LocalPool::begin_restart(files(), &whole, &problem).ok()) << when << ": " << problem.text;
    return whole;
  }
  void change() {
    auto opened = LocalPool::open(made_files(), &problem);
    ASSERT_TRUE(opened.ok()) << problem.text;
    fill(**opened, kNew);
  }
  void end() { ASSERT_TRUE(LocalPool::end_restart(files(), kIncarnations, &problem).ok()) << problem.text; }
  // Pool and copy are of one save, clean, and nothing else is left.
  void expect_done(std::byte value, const std::string& when) {
    EXPECT_EQ(int(LocalPool::inspect(files(), &problem)), int(LocalPool::Condition::kClean))
        << when << ": " << problem.text;
    expect_pages(files(), value, when);
    const auto in_memory = outline_pool(path.c_str(), &problem), saved = outline_pool(durable.c_str(), &problem);
    ASSERT_TRUE(in_memory.ok() && saved.ok()) << when << ": " << problem.text;
    EXPECT_EQ(in_memory->saves, saved->saves) << when;
    EXPECT_GT(saved->saves, lost_saves) << when;
    EXPECT_EQ(in_memory->pool_id, saved->pool_id) << when;
    Damage damage;
    EXPECT_TRUE(verify_saved(durable.c_str(), &damage, &problem).ok()) << when << ": " << problem.text;
    EXPECT_FALSE(fs::exists(BesideCopy(durable.c_str(), BesideCopy::kJournal).text)) << when;
    for (const std::string& name : {made, made_copy})
      for (const fs::path& file : left_of(name)) ADD_FAILURE() << when << ": " << file << " is left";
  }
  // All there was when a process died that had made the pool, and renamed so many files of its copy.  In memory is the
  // pool that it made, or nothing after a reboot.
  void leave_renamed(uint32_t renamed, const Contents& of_copy, const Contents& of_pool) {
    for (const fs::path& file : left_of(path)) fs::remove(file);
    for (uint32_t k = 0; k < kParts; k++) {
      const bool has_name = k >= kParts - renamed;
      set_contents(part(durable, k), has_name ? of_copy.at(k) : copy.at(k));
      if (!has_name) set_contents(part(made_copy, k), of_copy.at(k));
      if (!of_pool.empty()) set_contents(part(made, k), of_pool.at(k));
    }
    set_contents(BesideCopy(durable.c_str(), BesideCopy::kJournal).text, journal);
  }

  std::string made, made_copy, journal;
  Contents copy;
  uint64_t lost_saves = 0;
  Problem problem;
};

TEST_F(PoolRestart, ItBeginsWithThePagesOfTheCopyWhichStaysAsItIs) {
  EXPECT_EQ(int(LocalPool::inspect(files(), &problem)), int(LocalPool::Condition::kUnclean));
  EXPECT_FALSE(begin());
  EXPECT_EQ(int(LocalPool::inspect(made_files(), &problem)), int(LocalPool::Condition::kClean)) << problem.text;
  expect_pages(made_files(), kOld, "made");
  change();
  EXPECT_TRUE(contents_of(durable) == copy);
  EXPECT_TRUE(contents(BesideCopy(durable.c_str(), BesideCopy::kJournal).text) == journal);
  EXPECT_FALSE(fs::exists(path));
  EXPECT_FALSE(begin()) << "again";
  expect_pages(made_files(), kOld, "made again");
}

TEST_F(PoolRestart, ItTakesTheLostOnesPlace) {
  EXPECT_FALSE(begin());
  change();
  end();
  expect_done(kNew, "in memory");
  lose_memory();
  expect_pages(files(), kNew, "on the disk");
}

// A restored cluster is made out of the same copy as the one that the backup is of (pool.made-tells-itself).
TEST_F(PoolRestart, TwoThatAreMadeOutOfOneCopyAreOfDifferentSaves) {
  std::map<uint64_t, int> found;
  for (int i = 0; i < 2; ++i) {
    for (const fs::path& file : left_of(path)) fs::remove(file);
    for (const auto& [k, bytes] : copy) set_contents(part(durable, k), bytes);
    set_contents(BesideCopy(durable.c_str(), BesideCopy::kJournal).text, journal);
    EXPECT_FALSE(begin());
    change();
    end();
    expect_done(kNew, "made");
    ++found[outline_pool(durable.c_str(), &problem)->saves];
  }
  EXPECT_EQ(found.size(), 2u);
}

TEST_F(PoolRestart, NoIncarnationIsGivenTwice) {
  for (const uint64_t by_logs : {kIncarnations, uint64_t{1}}) {  // what the copy itself says stays
    EXPECT_FALSE(begin());
    ASSERT_TRUE(LocalPool::end_restart(files(), by_logs, &problem).ok()) << problem.text;
    auto opened = LocalPool::open(files(), &problem);
    ASSERT_TRUE(opened.ok()) << problem.text;
    pool = opened.take();
    EXPECT_GT(add_node(16, false).node->incarnation(), kIncarnations);
    nodes.clear();
    lose_memory();
  }
}

TEST_F(PoolRestart, AHalfWrittenOneIsThrownAway) {
  EXPECT_FALSE(begin());
  change();
  end();
  const Contents of_copy = contents_of(durable);
  for (uint32_t whole = 0; whole < kParts; whole++) {  // memory node 0's is written last
    const std::string when = std::to_string(whole) + " of three are whole";
    leave_renamed(0, of_copy, {});
    for (uint32_t k = 0; k < kParts - whole; k++) fs::remove(part(made_copy, k));
    set_contents(MemoryPath(made_copy.c_str(), kParts - 1 - whole, true).text, std::string(100'000, '\0'));
    EXPECT_FALSE(begin(when)) << when;
    for (const fs::path& file : left_of(made_copy)) ADD_FAILURE() << when << ": " << file << " is left";
    expect_pages(made_files(), kOld, when);
    EXPECT_TRUE(contents_of(durable) == copy) << when;
    change();
    end();
    expect_done(kNew, when);
  }
}

// One that was begun, and lost by memory, does not hinder the next.
TEST_F(PoolRestart, AProcessThatDiesEarlierHasChangedNothing) {
  EXPECT_FALSE(begin());
  change();
  lose_memory();
  EXPECT_FALSE(begin());
  expect_pages(made_files(), kOld, "begun again");
  EXPECT_TRUE(contents_of(durable) == copy);
}

TEST_F(PoolRestart, OneThatIsOlderThanTheCopyOrAnothersIsThrownAway) {
  for (const size_t field : {offsetof(PoolHeader, saves), offsetof(PoolHeader, state)}) {
    leave_renamed(0, copy, {});  // no later than the copy, and in use
    if (field == offsetof(PoolHeader, state)) {
      std::string clean = copy.at(0);
      clean[field] = char(PoolState::kClean);
      set_contents(part(made_copy, 0), clean);
    }
    EXPECT_FALSE(begin());
    EXPECT_TRUE(left_of(made_copy).empty());
    EXPECT_TRUE(contents_of(durable) == copy);
    expect_pages(made_files(), kOld, "begun");
  }
}

TEST_F(PoolRestart, ADamagedCopyIsRefusedAndLeavesNothing) {
  bool whole = false;
  std::string flipped = copy.at(1);
  flipped[flipped.size() / 2] ^= 1;
  set_contents(part(durable, 1), flipped);
  EXPECT_EQ(LocalPool::begin_restart(files(), &whole, &problem).error(), Errc::kCorrupt);
  EXPECT_NE(strstr(problem.text, ".durable.mem1"), nullptr) << problem.text;
  for (const std::string& name : {made, made_copy}) EXPECT_TRUE(left_of(name).empty());
  fs::remove(part(durable, 0));
  EXPECT_EQ(LocalPool::begin_restart(files(), &whole, &problem).error(), Errc::kNotFound);
  EXPECT_NE(strstr(problem.text, durable.c_str()), nullptr) << problem.text;
}

// pool.failed-save-harmless
TEST_F(PoolRestart, ACopyThatCannotBeWrittenIsTriedAgain) {
  EXPECT_FALSE(begin());
  change();
  fs::create_directory(made_copy + ".mem1");
  EXPECT_FALSE(LocalPool::end_restart(files(), kIncarnations, &problem).ok());
  EXPECT_TRUE(contents_of(durable) == copy);
  EXPECT_TRUE(contents(BesideCopy(durable.c_str(), BesideCopy::kJournal).text) == journal);
  EXPECT_FALSE(fs::exists(path));
  fs::remove(made_copy + ".mem1");
  EXPECT_FALSE(begin());
  change();
  end();
  expect_done(kNew, "tried again");
}

TEST_F(PoolRestart, TheNextProcessEndsWhatOneThatDiedHadMadeWhole) {
  EXPECT_FALSE(begin());
  change();
  end();
  const Contents of_copy = contents_of(durable), of_pool = contents_of(path);
  for (uint32_t renamed = 0; renamed < kParts; renamed++)
    for (const bool rebooted : {false, true}) {
      const std::string when = std::to_string(renamed) + (rebooted ? " renamed, reboot" : " renamed");
      leave_renamed(renamed, of_copy, rebooted ? Contents{} : of_pool);
      EXPECT_EQ(int(LocalPool::inspect(files(), &problem)), int(LocalPool::Condition::kUnclean))
          << when << ": " << problem.text;
      EXPECT_EQ(LocalPool::open(files(), &problem).error(), Errc::kFenced) << when;
      EXPECT_TRUE(begin(when)) << when;
      expect_done(kNew, when);
    }
}

// Some of its files may be the copy's already: without it nothing would be whole.
TEST_F(PoolRestart, OneThatCannotBeReadIsNotThrownAway) {
  EXPECT_FALSE(begin());
  change();
  end();
  const Contents of_copy = contents_of(durable);
  leave_renamed(1, of_copy, {});
  std::string flipped = of_copy.at(0);
  flipped[offsetof(PoolHeader, compatibility)] ^= 1;
  set_contents(part(made_copy, 0), flipped);
  bool whole = false;
  EXPECT_EQ(LocalPool::begin_restart(files(), &whole, &problem).error(), Errc::kCorrupt);
  EXPECT_NE(strstr(problem.text, ".durable.next"), nullptr) << problem.text;
  EXPECT_TRUE(contents(part(made_copy, 0)) == flipped);
  EXPECT_TRUE(contents(part(made_copy, 1)) == of_copy.at(1));
  set_contents(part(made_copy, 0), of_copy.at(0));
  EXPECT_TRUE(begin());
  expect_done(kNew, "read again");
  leave_renamed(0, of_copy, {});
  set_contents(part(made_copy, 0), flipped);
  EXPECT_FALSE(begin()) << "the copy is whole";
  expect_pages(made_files(), kOld, "made again");
}

// Else a later loss of memory would find a whole copy that lacks what was done since (pool.placed-before-used).
TEST_F(PoolRestart, ACopyThatCountsTakesItsPlaceBeforeThePoolIsUsedAgain) {
  EXPECT_FALSE(begin());
  change();
  end();
  const Contents of_copy = contents_of(durable), of_pool = contents_of(path);
  for (const uint32_t renamed : {0, 1, 2}) {
    SCOPED_TRACE(renamed);
    leave_renamed(renamed, of_copy, {});
    for (uint32_t k = 0; k < kParts; k++) set_contents(part(path, k), of_pool.at(k));
    pool = gcl_test::must(LocalPool::open(files(), &problem), problem);
    add_node(16, false);
    nodes.clear();
    EXPECT_TRUE(left_of(made_copy).empty());
    lose_memory();
    EXPECT_FALSE(begin()) << "what was done since is in the logs";
    expect_pages(made_files(), kNew, "begun with that copy");
  }
}

// It is made again while the copy is whole; else nothing is touched.
TEST_F(PoolRestart, OneThatLacksAFileReplacesNothing) {
  EXPECT_FALSE(begin());
  change();
  end();
  const Contents of_copy = contents_of(durable);
  for (const uint32_t renamed : {0, 1}) {
    leave_renamed(renamed, of_copy, {});
    const Contents there = contents_of(durable);
    fs::remove(part(made_copy, 1));
    bool whole = false;
    const Status begun = LocalPool::begin_restart(files(), &whole, &problem);
    EXPECT_EQ(int(begun.error()), int(renamed == 0 ? Errc::kOk : Errc::kCorrupt)) << problem.text;
    EXPECT_FALSE(whole);
    EXPECT_TRUE(contents_of(durable) == there);
    EXPECT_EQ(fs::exists(part(made_copy, 0)), renamed != 0);
    if (renamed == 0) expect_pages(made_files(), kOld, "made again");
  }
  EXPECT_NE(strstr(problem.text, ".durable.mem1"), nullptr) << problem.text;
}

// The copy says so by itself, and the journal is of earlier saves.
TEST_F(PoolRestart, BehindTheLastFileOfTheCopyAllIsDone) {
  EXPECT_FALSE(begin());
  change();
  end();
  const Contents of_copy = contents_of(durable), of_pool = contents_of(path);
  for (uint32_t renamed = 0; renamed < kParts; renamed++) {  // of the files in memory
    const std::string when = std::to_string(renamed) + " renamed in memory";
    leave_renamed(kParts, of_copy, of_pool);
    for (uint32_t k = kParts - renamed; k < kParts; k++) fs::rename(part(made, k), part(path, k));
    EXPECT_EQ(int(LocalPool::inspect(files(), &problem)), int(LocalPool::Condition::kClean))
        << when << ": " << problem.text;
    int counts = 0;
    const auto count = [&](uint32_t, std::span<const std::byte>) -> Status {
      counts++;
      return {};
    };
    const auto saved = outline_pool(durable.c_str(), &problem);
    ASSERT_TRUE(saved.ok()) << problem.text;
    EXPECT_TRUE(PoolJournal::visit(durable.c_str(), saved->pool_id, saved->saves, count, &problem).ok());
    EXPECT_EQ(counts, 0) << when;
    expect_pages(files(), kNew, when);
    for (const fs::path& file : left_of(made)) ADD_FAILURE() << when << ": " << file << " is left in memory";
  }
}

}  // namespace coherence

// A checkpoint's two files: what is written is read again, what is damaged is refused, and the one before is whole
// until the next one has its name (checkpoint.replaced-as-whole).
#include "recovery/checkpoint.hpp"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>

#include "coherence/region/since_save.hpp"
#include "tests/support/longer.hpp"

namespace {

std::vector<std::string> synced_files;  // and directories, by their names

}  // namespace

// The C library's, which is called in this program.
extern "C" int fsync(int fd) {
  std::error_code none;
  synced_files.push_back(std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(fd), none));
  return int(syscall(SYS_fsync, fd));
}

namespace recovery {
namespace {

namespace fs = std::filesystem;
using bufmgr::PageId;
using coherence::BesideCopy;
using coherence::Errc;
using coherence::kPageSize;

class CheckpointTest : public ::testing::Test {
 protected:
  CheckpointTest() {
    directory_ = "/dev/shm/gcl-test-XXXXXX";
    EXPECT_NE(mkdtemp(directory_.data()), nullptr);
    durable_ = directory_ + "/durable";
  }
  ~CheckpointTest() override { fs::remove_all(directory_); }

  std::string file() const { return BesideCopy(durable_.c_str(), BesideCopy::kCheckpoint).text; }
  std::string delta() const { return BesideCopy(durable_.c_str(), BesideCopy::kDelta).text; }
  static std::string contents(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  static void set_contents(const std::string& path, const std::string& all) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << all;
  }
  static Checkpoint example() {
    Checkpoint one{.pool_id = 7, .saves = 3, .number = 2, .time_us = 99};
    one.logs = {{1, 0, 5, 1000, 0xabcdef, 4096}, {2, 4, 9, 2000, 77, 8}};
    one.rings = {{2, 8, 640}};
    one.evidence = {{1, std::vector<std::byte>(5, std::byte{9})}, {2, {}}};
    one.pages = {{PageId::at({0}, 5), 0, 1}, {PageId::at({1}, 6), 1, 2}};
    return one;
  }
  Checkpoint read() {
    auto found = read_checkpoint(durable_.c_str(), 7, 3, &problem_);
    EXPECT_TRUE(found.ok()) << problem_.text;
    return found ? found.take() : Checkpoint{};
  }
  void write(const Checkpoint& one) {
    ASSERT_TRUE(write_checkpoint(durable_.c_str(), one, &problem_).ok()) << problem_.text;
  }
  std::unique_ptr<DeltaPages> open(const std::vector<Checkpoint::Page>& pages) {
    auto opened = DeltaPages::open(durable_.c_str(), pages, &problem_);
    EXPECT_TRUE(opened.ok()) << problem_.text;
    return opened ? opened.take() : nullptr;
  }

  std::string directory_, durable_;
  coherence::Problem problem_;
};

TEST_F(CheckpointTest, IsReadAsItWasWritten) {
  EXPECT_EQ(read().number, 0u) << "there is none";
  const Checkpoint one = example();
  write(one);
  const Checkpoint again = read();
  EXPECT_EQ(again.number, 2u);
  EXPECT_EQ(again.time_us, 99u);
  ASSERT_EQ(again.logs.size(), 2u);
  EXPECT_EQ(again.logs[1].after, 4u);
  EXPECT_EQ(again.logs[1].upto, 9u);
  EXPECT_EQ(again.logs[0].check, 0xabcdefu);
  EXPECT_EQ(again.logs[0].sequence_end, 4096u);
  ASSERT_EQ(again.rings.size(), 1u);
  EXPECT_EQ(again.rings[0].at, 640u);
  ASSERT_EQ(again.evidence.size(), 2u);
  EXPECT_EQ(again.evidence[0].bytes, one.evidence[0].bytes);
  ASSERT_EQ(again.pages.size(), 2u);
  EXPECT_EQ(again.pages[1].page, one.pages[1].page);
  EXPECT_FALSE(fs::exists(file() + ".next"));
}

// checkpoint.counts-until-saved
TEST_F(CheckpointTest, CountsForItsSaveOnly) {
  write(example());
  for (const auto& [pool, saves] : std::map<uint64_t, uint64_t>{{7, 4}, {8, 3}}) {
    const auto found = read_checkpoint(durable_.c_str(), pool, saves, &problem_);
    ASSERT_TRUE(found.ok());
    EXPECT_EQ(found->number, 0u);
  }
}

TEST_F(CheckpointTest, AnyDamageIsFound) {
  write(example());
  const std::string whole = contents(file());
  for (size_t i = 0; i < whole.size(); ++i) {
    std::string damaged = whole;
    damaged[i] = char(damaged[i] ^ 1);
    set_contents(file(), damaged);
    const auto found = read_checkpoint(durable_.c_str(), 7, 3, &problem_);
    EXPECT_FALSE(found.ok()) << "byte " << i;
    EXPECT_NE(strstr(problem_.text, file().c_str()), nullptr) << problem_.text;
  }
  for (const size_t bytes : {size_t{0}, size_t{10}, whole.size() - 1}) {
    set_contents(file(), whole.substr(0, bytes));
    EXPECT_EQ(read_checkpoint(durable_.c_str(), 7, 3, &problem_).error(), Errc::kCorrupt) << bytes;
  }
  set_contents(file(), whole + "x");
  EXPECT_EQ(read_checkpoint(durable_.c_str(), 7, 3, &problem_).error(), Errc::kCorrupt);
}

TEST_F(CheckpointTest, OfALaterFormatIsRefused) {
  write(example());
  std::string later = contents(file());
  later[8] = 2;
  set_contents(file(), later);
  EXPECT_EQ(read_checkpoint(durable_.c_str(), 7, 3, &problem_).error(), Errc::kIncompatible);
  EXPECT_EQ(std::string(problem_.text),
            file() + " has format 2, and format 1 is read here; a later version of gcl wrote it: use that one");
}

TEST_F(CheckpointTest, OneThatCannotBeWrittenLeavesTheOneBefore) {
  write(example());
  fs::create_directory(file() + ".next");
  Checkpoint next = example();
  next.number = 3;
  EXPECT_EQ(write_checkpoint(durable_.c_str(), next, &problem_).error(), Errc::kSystem);
  EXPECT_EQ(read().number, 2u);
}

TEST_F(CheckpointTest, SaveForgetsIt) {
  write(example());
  (void)open({})->finish(&problem_);
  coherence::forget_since_save(durable_.c_str());
  EXPECT_TRUE(fs::is_empty(directory_));
}

// checkpoint.name-durable-first.  A process may die when the checkpoint has its name, and before that is on the disk.
TEST_F(CheckpointTest, ItsNameIsOnTheDiskBeforeImagesOfTheOneBeforeAreOverwritten) {
  write(example());
  (void)open({})->finish(&problem_);
  synced_files.clear();
  const auto delta = open(read().pages);
  EXPECT_TRUE(std::ranges::count(synced_files, directory_) > 0);
}

// A process may die at any moment of many checkpoints: the images of the one that has its name are there.
TEST_F(CheckpointTest, ImagesOfTheOneThatCountsAreNeverOverwritten) {
  std::mt19937_64 random(gcl_test::seed(3));
  std::map<uint64_t, char> model, counted;  // the byte that fills each page
  std::vector<Checkpoint::Page> index;
  alignas(8) std::byte image[kPageSize];
  constexpr uint64_t kPages = 40;
  for (int round = 0; round < 60; ++round) {
    auto delta = open(index);
    model = counted;
    for (uint64_t i = random() % 20; i > 0; --i) {
      const PageId page = PageId::at({uint8_t(random() % 2)}, random() % kPages / 2);
      if (model[page.raw] != counted[page.raw]) continue;  // once in each
      model[page.raw] = char(1 + random() % 250);
      memset(image, model[page.raw], sizeof image);
      ASSERT_TRUE(delta->write(page, image, &problem_).ok()) << problem_.text;
    }
    if (random() % 3 != 0) {  // else it dies before it has written the index
      auto pages = delta->finish(&problem_);
      ASSERT_TRUE(pages.ok()) << problem_.text;
      index = pages.take();
      counted = model;
    }
    delta.reset();
    std::erase_if(counted, [](const auto& one) { return one.second == 0; });
    const auto again = open(index);
    EXPECT_EQ(again->count(), counted.size());
    for (uint64_t raw = 0; raw < kPages; ++raw) {
      const PageId page = PageId::at({uint8_t(raw % 2)}, raw / 2);
      const auto there = again->read(page, image, &problem_);
      ASSERT_TRUE(there.ok()) << problem_.text;
      ASSERT_EQ(*there, counted.contains(page.raw));
      if (*there) {
        EXPECT_EQ(char(image[kPageSize - 1]), counted[page.raw]);
      }
    }
  }
  EXPECT_LE(fs::file_size(delta()), 2 * kPages * kPageSize) << "a place is used again";
}

TEST_F(CheckpointTest, ADamagedImageIsNamed) {
  alignas(8) std::byte image[kPageSize] = {};
  auto delta = open({});
  ASSERT_TRUE(delta->write(PageId::at({1}, 77), image, &problem_).ok());
  auto index = delta->finish(&problem_);
  ASSERT_TRUE(index.ok());
  std::string bytes = contents(this->delta());
  bytes[kPageSize / 2] = 1;
  set_contents(this->delta(), bytes);
  EXPECT_EQ(open(*index)->read(PageId::at({1}, 77), image, &problem_).error(), Errc::kCorrupt);
  for (const char* words :
       {"page verification failed, calculated checksum ", " but expected ", ": page 77 of memory node 1 in ", ".delta"})
    EXPECT_NE(strstr(problem_.text, words), nullptr) << problem_.text;
  fs::remove(this->delta());
  EXPECT_EQ(DeltaPages::open(durable_.c_str(), *index, &problem_).error(), Errc::kNotFound);
}

}  // namespace
}  // namespace recovery

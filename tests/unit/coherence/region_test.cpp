// The file of one memory node by itself (region.one-file): no other file of the pool is there.
#include "coherence/region/region_file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "coherence/pool/pool.hpp"
#include "coherence/region/checksums.hpp"
#include "coherence/region/memory_file.hpp"

namespace coherence {
namespace {

constexpr uint32_t kNumber = 2;
constexpr uint64_t kPages = 100;

class Region : public testing::Test {
 protected:
  void SetUp() override {
    header_.magic = kPoolMagic;
    header_.format_version = kPoolFormatVersion;
    header_.block_size = kPageSize;
    header_.nodes_max = 4;
    header_.state = PoolState::kClean;
    header_.pool_id = 42;
    header_.memory_nodes = 3;
    header_.saves = 7;
    PoolSpec spec;
    spec.further_pages_bytes = kPages * kPageSize;
    lay_out_region(spec, kNumber, &header_);
    ASSERT_TRUE(make_region(pool_.c_str(), header_, &problem_).ok()) << problem_.text;
    fill(page_at(kPages - 1), 'x');
  }
  void TearDown() override {
    for (const std::string& name : {pool_, saved_}) {
      EXPECT_NE(access(name.c_str(), F_OK), 0) << "memory node 0";
      for (uint32_t k = 0; k < 4; k++) unlink(MemoryPath(name.c_str(), k).text);
      for (uint32_t k = 0; k < 4; k++) unlink(MemoryPath(name.c_str(), k, true).text);
    }
  }
  uint64_t page_at(uint64_t page) const { return header_.places().page(page).offset(); }
  uint64_t word_at(uint64_t page) const { return header_.places().word(page).offset(); }
  std::string file() const { return MemoryPath(pool_.c_str(), kNumber).text; }
  std::string copy() const { return MemoryPath(saved_.c_str(), kNumber).text; }
  void put(const std::string& path, uint64_t at, const void* bytes, size_t count) {
    const File file(open(path.c_str(), O_RDWR));
    ASSERT_TRUE(write_all(file.fd(), static_cast<const std::byte*>(bytes), count, at));
  }
  void fill(uint64_t at, char with) {
    const std::vector<char> page(kPageSize, with);
    put(file(), at, page.data(), page.size());
  }
  static std::vector<std::byte> bytes_of(const std::string& path, uint64_t count) {
    std::vector<std::byte> bytes(count);
    const File file(open(path.c_str(), O_RDONLY));
    EXPECT_TRUE(read_all(file.fd(), bytes.data(), count, 0)) << path;
    return bytes;
  }
  Status load(Damage* damage) {
    return load_region(saved_.c_str(), kNumber, header_.bytes, pool_.c_str(), damage, &problem_);
  }

  const std::string pool_ = "/dev/shm/gcl-test-region-" + std::to_string(getpid());
  const std::string saved_ = "/tmp/gcl-test-region-" + std::to_string(getpid());
  PoolHeader header_{};
  Problem problem_;
};

TEST_F(Region, IsMadeAndCheckedAlone) {
  PoolHeader found{};
  ASSERT_TRUE(check_region(pool_.c_str(), kNumber, false, &found, &problem_).ok()) << problem_.text;
  EXPECT_EQ(found.pool_id, 42u);
  EXPECT_EQ(found.memory_node, kNumber);
  EXPECT_EQ(found.places().pages, kPages);
  EXPECT_EQ(check_region(pool_.c_str(), 1, false, &found, &problem_).error(), Errc::kNotFound);
  ASSERT_EQ(rename(file().c_str(), MemoryPath(pool_.c_str(), 1).text), 0);
  EXPECT_EQ(check_region(pool_.c_str(), 1, false, &found, &problem_).error(), Errc::kCorrupt);
  EXPECT_NE(strstr(problem_.text, "in the place of memory node 1"), nullptr) << problem_.text;
}

TEST_F(Region, ThatIsCutShortOrOfAnotherFormatIsRefused) {
  PoolHeader found{};
  const uint32_t other = kPoolFormatVersion + 1;
  put(file(), offsetof(PoolHeader, format_version), &other, sizeof other);
  EXPECT_EQ(check_region(pool_.c_str(), kNumber, false, &found, &problem_).error(), Errc::kIncompatible);
  put(file(), offsetof(PoolHeader, format_version), &kPoolFormatVersion, sizeof other);
  ASSERT_EQ(truncate(file().c_str(), off_t(header_.bytes - kPageSize)), 0);
  EXPECT_EQ(check_region(pool_.c_str(), kNumber, false, &found, &problem_).error(), Errc::kCorrupt);
}

TEST_F(Region, WhosePagesAreOwnedIsNotToBeSaved) {
  ASSERT_TRUE(check_words_free(pool_.c_str(), kNumber, &problem_).ok()) << problem_.text;
  for (const uint64_t page : {uint64_t{0}, uint64_t{41}, kPages - 1}) {
    const uint64_t owned = LatchWord::owned_by(NodeId{3}).raw, free = 0;
    put(file(), word_at(page), &owned, sizeof owned);
    EXPECT_EQ(check_words_free(pool_.c_str(), kNumber, &problem_).error(), Errc::kCorrupt);
    const std::string expected = "page " + std::to_string(page) + " of memory node 2 is still owned";
    EXPECT_NE(strstr(problem_.text, expected.c_str()), nullptr) << problem_.text;
    put(file(), word_at(page), &free, sizeof free);
  }
  EXPECT_TRUE(check_words_free(pool_.c_str(), kNumber, &problem_).ok()) << problem_.text;
}

TEST_F(Region, IsSavedAndLoadedAlone) {
  const std::vector<std::byte> before = bytes_of(file(), header_.bytes);
  ASSERT_TRUE(save_region(pool_.c_str(), kNumber, copy().c_str(), &problem_).ok()) << problem_.text;
  PoolHeader found{};
  ASSERT_TRUE(check_region(saved_.c_str(), kNumber, true, &found, &problem_).ok()) << problem_.text;
  EXPECT_EQ(found.saves, 7u);
  ASSERT_EQ(unlink(file().c_str()), 0);  // memory is lost
  Damage damage;
  ASSERT_TRUE(load(&damage).ok()) << problem_.text;
  EXPECT_EQ(damage.bad, 0u);
  EXPECT_NE(access(file().c_str(), F_OK), 0) << "it has no name yet";
  ASSERT_TRUE(name_loaded(pool_.c_str(), kNumber, &problem_).ok()) << problem_.text;
  EXPECT_TRUE(bytes_of(file(), header_.bytes) == before);
  EXPECT_TRUE(check_region(pool_.c_str(), kNumber, false, &found, &problem_).ok()) << problem_.text;
}

TEST_F(Region, WhoseCopyIsDamagedIsToldByPage) {
  ASSERT_TRUE(save_region(pool_.c_str(), kNumber, copy().c_str(), &problem_).ok()) << problem_.text;
  put(copy(), page_at(kPages - 1) + 17, "y", 1);
  Damage damage;
  ASSERT_TRUE(load(&damage).ok()) << problem_.text;
  ASSERT_EQ(damage.bad, 1u);
  EXPECT_EQ(damage.first[0].memory_node, kNumber);
  EXPECT_EQ(damage.first[0].page, kPages - 1);
  ASSERT_EQ(truncate(copy().c_str(), off_t(header_.bytes + 1)), 0);  // no copy has that size
  EXPECT_EQ(load(&damage).error(), Errc::kCorrupt);
}

}  // namespace
}  // namespace coherence

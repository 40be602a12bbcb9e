// Single pages out of a durable copy, each with its checksum.
#include "coherence/region/saved_pages.hpp"

#include <fcntl.h>
#include <unistd.h>

#include "cluster.hpp"
#include "tests/support/pool_bytes.hpp"

namespace coherence {

class SavedPagesTest : public ClusterTest {
 protected:
  void SetUp() override {
    ClusterTest::SetUp();
    ASSERT_TRUE(LocalPool::add_memory_node(files(), kPages * kPageSize, &problem).ok()) << problem.text;
    for (uint8_t k = 0; k < 2; k++)
      for (uint64_t n = 0; n < 3; n++) memset(gcl_test::pool_bytes(*pool, page(n, k)), int(10 * k + n + 1), kPageSize);
    ASSERT_TRUE(LocalPool::save_again(files(), &problem).ok()) << problem.text;
  }
  std::unique_ptr<SavedPages> open() {
    auto opened = SavedPages::open(durable.c_str(), &problem);
    EXPECT_TRUE(opened.ok()) << problem.text;
    return opened ? opened.take() : nullptr;
  }
  void damage(uint32_t k, uint64_t at) {
    const File file(::open(MemoryPath(durable.c_str(), k).text, O_RDWR));
    const std::byte bad{0xee};
    ASSERT_TRUE(file.open() && write_all(file.fd(), &bad, 1, at));
  }
  uint64_t offset(PageId p) { return pool->page_address(p).offset(); }

  alignas(8) std::byte bytes[kPageSize];
  Problem problem;
};

TEST_F(SavedPagesTest, AreAsTheyWereSaved) {
  add_node(16, false);  // the copy says "in use" from here on
  memset(gcl_test::pool_bytes(*pool, page(1, 1)), 99, kPageSize);
  const auto saved = open();
  EXPECT_EQ(saved->pool_id(), pool->pool_id());
  EXPECT_EQ(saved->saves(), pool->saves());
  for (uint8_t k = 0; k < 2; k++)
    for (uint64_t n = 0; n < 4; n++) {
      ASSERT_TRUE(saved->read(page(n, k), bytes, &problem).ok()) << problem.text;
      EXPECT_EQ(int(bytes[kPageSize - 1]), n < 3 ? int(10 * k + n + 1) : 0);
    }
}

TEST_F(SavedPagesTest, OfAMemoryNodeThatHasComeSinceAreZeros) {
  bytes[5] = std::byte{1};
  ASSERT_TRUE(open()->read(page(3, 2), bytes, &problem).ok());
  EXPECT_EQ(int(bytes[5]), 0);
  EXPECT_EQ(open()->read(page(1 << 20, 1), bytes, &problem).error(), Errc::kNotFound);
}

TEST_F(SavedPagesTest, ADamagedOneIsNamedAndOthersAreRead) {
  damage(1, offset(page(2, 1)) + 100);
  const auto saved = open();
  EXPECT_EQ(saved->read(page(2, 1), bytes, &problem).error(), Errc::kCorrupt);
  EXPECT_NE(strstr(problem.text, "page 2 of memory node 1"), nullptr) << problem.text;
  EXPECT_TRUE(saved->read(page(1, 1), bytes, &problem).ok());
}

TEST_F(SavedPagesTest, DamagedChecksumsAreNotBelieved) {
  const auto header = outline_pool(durable.c_str(), &problem);
  ASSERT_TRUE(header.ok());
  damage(1, header->bytes[1] + offset(page(2, 1)) / kBlockBytes * sizeof(uint32_t));
  const auto saved = SavedPages::open(durable.c_str(), &problem);
  if (saved.ok()) {
    EXPECT_EQ((*saved)->read(page(2, 1), bytes, &problem).error(), Errc::kCorrupt);
  } else {
    EXPECT_EQ(saved.error(), Errc::kCorrupt);  // the header is in the same page of checksums
  }
}

TEST_F(SavedPagesTest, ANewCopyInItsPlaceChangesNothing) {
  const auto saved = open();
  memset(gcl_test::pool_bytes(*pool, page(1, 0)), 99, kPageSize);
  ASSERT_TRUE(LocalPool::save_again(files(), &problem).ok()) << problem.text;
  ASSERT_TRUE(saved->read(page(1, 0), bytes, &problem).ok()) << problem.text;
  EXPECT_EQ(int(bytes[0]), 2);
}

TEST_F(SavedPagesTest, AFileThatIsMissingIsNamed) {
  unlink(MemoryPath(durable.c_str(), 1).text);
  EXPECT_EQ(SavedPages::open(durable.c_str(), &problem).error(), Errc::kNotFound);
  EXPECT_NE(strstr(problem.text, ".mem1"), nullptr) << problem.text;
}

}  // namespace coherence

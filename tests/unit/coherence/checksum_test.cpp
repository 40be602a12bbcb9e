// What the disk gives back and was not written is found, and named (pool.copy-checksummed).
#include <fcntl.h>
#include <unistd.h>

#include <filesystem>

#include "cluster.hpp"
#include "coherence/region/checksums.hpp"
#include "coherence/region/memory_file.hpp"
#include "coherence/region/pool_header.hpp"
#include "tests/support/pool_bytes.hpp"

namespace coherence {

namespace fs = std::filesystem;

// A pool with a value in page 7 of memory node 0 and page 9 of memory node 1, saved, and lost by tmpfs.
class Checksums : public ClusterTest {
 protected:
  void SetUp() override {
    ClusterTest::SetUp();
    first_page[0] = pool->page_address(page(0, 0)).offset() / kBlockBytes;
    first_page[1] = pool->page_address(page(0, 1)).offset() / kBlockBytes;
    memset(gcl_test::pool_bytes(*pool, page(7, 0)), 0x55, kPageSize);
    memset(gcl_test::pool_bytes(*pool, page(9, 1)), 0x66, kPageSize);
    pool.reset();
    ASSERT_TRUE(LocalPool::save_again(files(), &problem).ok()) << problem.text;
    lose_tmpfs();
  }
  void lose_tmpfs() {
    fs::remove(path);
    fs::remove(path + ".mem1");
  }
  std::string file(uint32_t k) const { return MemoryPath(durable.c_str(), k).text; }
  static void flip(const std::string& file, uint64_t at, uint8_t bit = 1) {
    const int fd = ::open(file.c_str(), O_RDWR);
    ASSERT_GE(fd, 0);
    uint8_t byte;
    ASSERT_EQ(pread(fd, &byte, 1, off_t(at)), 1);
    byte ^= bit;
    ASSERT_EQ(pwrite(fd, &byte, 1, off_t(at)), 1);
    ::close(fd);
  }
  uint64_t in_page(uint64_t n, uint8_t k) const { return (first_page[k] + n) * kBlockBytes + 100; }
  void expect_refused(std::initializer_list<const char*> words) {
    const auto before = fs::last_write_time(file(0));
    EXPECT_EQ(LocalPool::open(files(), &problem).error(), Errc::kCorrupt);
    for (const char* word : words) EXPECT_NE(strstr(problem.text, word), nullptr) << problem.text;
    for (const char* name : {"", ".new", ".mem1", ".mem1.new"}) EXPECT_FALSE(fs::exists(path + name)) << name;
    EXPECT_EQ(fs::last_write_time(file(0)), before);
    Damage damage;
    EXPECT_EQ(verify_saved(durable.c_str(), &damage, &problem).error(), Errc::kCorrupt);
    for (const char* word : words) EXPECT_NE(strstr(problem.text, word), nullptr) << problem.text;
  }
  void expect_opens() {
    Damage damage;
    EXPECT_TRUE(verify_saved(durable.c_str(), &damage, &problem).ok()) << problem.text;
    auto opened = LocalPool::open(files(), &problem);
    ASSERT_TRUE(opened.ok()) << problem.text;
    EXPECT_EQ(*gcl_test::pool_bytes(**opened, page(7, 0)), std::byte{0x55});
    EXPECT_EQ(*gcl_test::pool_bytes(**opened, page(9, 1)), std::byte{0x66});
  }
  uint64_t first_page[2];
  Problem problem;
};

TEST_F(Checksums, AWholeCopyIsLoaded) {
  for (uint32_t k = 0; k < 2; k++) EXPECT_EQ(bytes_of_saved(fs::file_size(file(k))) % kFileChunk, 0u);
  Damage damage;
  EXPECT_TRUE(verify_saved(durable.c_str(), &damage, &problem).ok()) << problem.text;
  EXPECT_EQ(damage.checked, (fs::file_size(file(0)) + fs::file_size(file(1))) / kBlockBytes);
  expect_opens();
}

TEST_F(Checksums, AFlippedBitInAPageIsNamed) {
  flip(file(1), in_page(9, 1));
  const std::string block = "1:" + std::to_string(first_page[1] + 9);
  expect_refused({"page verification failed, calculated checksum ", " but expected ", "page 9 of memory node 1",
                  block.c_str(), "durable.mem1"});
  flip(file(1), in_page(9, 1));
  expect_opens();
}

// The file system has it as a hole: nothing is read there.
TEST_F(Checksums, APageThatWasZeroIsCheckedToo) {
  flip(file(0), in_page(20, 0));
  expect_refused({"page 20 of memory node 0"});
  flip(file(0), in_page(20, 0));
  expect_opens();
}

TEST_F(Checksums, APageThatBecameAHoleIsFound) {
  const int fd = ::open(file(0).c_str(), O_RDWR);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, off_t(in_page(7, 0) - 100), kPageSize), 0);
  ::close(fd);
  expect_refused({"page 7 of memory node 0"});
}

TEST_F(Checksums, AllBlocksAreCheckedAndTheFirstBadOnesNamed) {
  for (uint64_t n = 0; n < 20; n++) flip(file(0), in_page(n, 0));
  flip(file(1), in_page(3, 1));
  expect_refused({" and 16 more "});
  Damage damage;
  EXPECT_EQ(verify_saved(durable.c_str(), &damage, &problem).error(), Errc::kCorrupt);
  EXPECT_EQ(damage.bad, 21u);
  EXPECT_EQ(damage.first[5].page, 5u);
}

// Any bit of the header, but those that say which file and format it is: block 0 is named, not what it then says.
TEST_F(Checksums, AFlippedBitInTheHeader) {
  for (uint32_t k = 0; k < 2; k++)
    for (size_t at : {offsetof(PoolHeader, block_size), offsetof(PoolHeader, pool_id), offsetof(PoolHeader, bytes) + 2,
                      offsetof(PoolHeader, memory_nodes), offsetof(PoolHeader, memory_node),
                      offsetof(PoolHeader, saves), offsetof(PoolHeader, region) + 2,
                      offsetof(PoolHeader, memory_bytes) + 2, offsetof(PoolHeader, compatibility), kBlockBytes - 1}) {
      flip(file(k), at);
      expect_refused({"page verification failed", "the header of memory node", k == 0 ? "0:0" : "1:0"});
      flip(file(k), at);
    }
  flip(file(0), offsetof(PoolHeader, state), 4);  // neither clean nor in use
  expect_refused({"page verification failed", "0:0"});
  flip(file(0), offsetof(PoolHeader, state), 4);
  expect_opens();
}

TEST_F(Checksums, AFlippedBitInTheChecksums) {
  const uint64_t at = bytes_of_saved(fs::file_size(file(1)));
  for (uint64_t in : {uint64_t{0}, offsetof(ChecksumPage, checksum), offsetof(ChecksumPage, of_block),
                      offsetof(ChecksumPage, of_block) + first_page[1] * 4, kBlockBytes - 1}) {
    flip(file(1), at + in);
    expect_refused({"the checksums of memory node 1", ("1:" + std::to_string(at / kBlockBytes)).c_str()});
    flip(file(1), at + in);
  }
  expect_opens();
}

TEST_F(Checksums, ChecksumsOfAnotherFileAreNoneOfThisOne) {
  fs::copy_file(file(1), path + "-kept");
  nodes.clear();
  auto opened = LocalPool::open(files(), &problem);
  ASSERT_TRUE(opened.ok()) << problem.text;
  memset(gcl_test::pool_bytes(**opened, page(9, 1)), 0x67, kPageSize);
  pool = opened.take();
  {
    TestNode& n = add_node(16, false);
    Session s(*n.node, SessionId{0}, nullptr);
    bool last = false;
    ASSERT_TRUE(n.node->leave(s, &last, &problem).ok()) << problem.text;
  }
  nodes.clear();
  pool.reset();
  lose_tmpfs();
  fs::copy_file(file(1), path + "-new");
  fs::copy_file(path + "-kept", file(1), fs::copy_options::overwrite_existing);
  expect_refused({"another save"});
  // The file is of this save, its checksums of the one before: as if they had never reached the disk.
  fs::copy_file(path + "-new", file(1), fs::copy_options::overwrite_existing);
  const uint64_t at = bytes_of_saved(fs::file_size(file(1)));
  std::vector<std::byte> old(kBlockBytes);
  int fd = ::open((path + "-kept").c_str(), O_RDONLY);
  ASSERT_TRUE(read_all(fd, old.data(), kBlockBytes, at));
  ::close(fd);
  fd = ::open(file(1).c_str(), O_RDWR);
  ASSERT_TRUE(write_all(fd, old.data(), kBlockBytes, at));
  ::close(fd);
  expect_refused({"page verification failed", "the header of memory node 1"});
}

TEST_F(Checksums, AFileCutShortOrGrown) {
  const uint64_t whole = fs::file_size(file(0));
  for (uint64_t size : {whole - 1, whole - kBlockBytes, whole - 2 * kBlockBytes, whole + kBlockBytes}) {
    fs::copy_file(file(0), path + "-kept");
    fs::resize_file(file(0), size);
    EXPECT_EQ(LocalPool::open(files(), &problem).error(), Errc::kCorrupt) << size;
    EXPECT_NE(strstr(problem.text, "not a whole pool file"), nullptr) << problem.text;
    EXPECT_EQ(LocalPool::inspect(files(), &problem), LocalPool::Condition::kDamaged);
    EXPECT_NE(strstr(problem.text, size < whole ? "shorter than" : "longer than"), nullptr) << problem.text;
    EXPECT_FALSE(fs::exists(path));
    fs::rename(path + "-kept", file(0));
  }
  expect_opens();
}

// The mark is written into the copy after its checksums were: they are those of a clean pool.
TEST_F(Checksums, ACopyThatIsInUseIsStillTheLastSave) {
  auto opened = LocalPool::open(files(), &problem);
  ASSERT_TRUE(opened.ok()) << problem.text;
  pool = opened.take();
  add_node(16, false);
  Damage damage;
  EXPECT_TRUE(verify_saved(durable.c_str(), &damage, &problem).ok()) << problem.text;
  EXPECT_EQ(damage.bad, 0u);
  lose_tmpfs();
  EXPECT_EQ(LocalPool::open(files(), &problem).error(), Errc::kFenced);
}

TEST_F(Checksums, AMemoryNodeThatIsAddedHasThemToo) {
  auto added = LocalPool::add_memory_node(files(), kPages * kPageSize, &problem);
  ASSERT_TRUE(added.ok()) << problem.text;
  EXPECT_TRUE(added->saved) << problem.text;
  lose_tmpfs();
  fs::remove(path + ".mem2");
  expect_opens();
  lose_tmpfs();
  fs::remove(path + ".mem2");
  flip(file(2), kPoolHeaderBytes - 1);
  expect_refused({"the header of memory node 2"});
}

TEST_F(Checksums, SizesOfCopiesAreUnambiguous) {
  constexpr uint64_t kPer = ChecksumPage::kBlocks;
  for (uint64_t blocks :
       {uint64_t{1}, uint64_t{8}, kPer - 1, kPer, kPer + 1, 2 * kPer, 2 * kPer + 1, 1000 * kPer + 7}) {
    EXPECT_EQ(bytes_of_saved(saved_bytes(blocks * kBlockBytes)), blocks * kBlockBytes);
    EXPECT_EQ(bytes_of_saved(saved_bytes(blocks * kBlockBytes) + 1), 0u);
  }
  EXPECT_EQ(bytes_of_saved((kPer + 2) * kBlockBytes), 0u) << "a page of checksums without a block";
}

// More blocks than one page of checksums has, most of them never written.
TEST_F(Checksums, OfALargePoolWithHoles) {
  const std::string big = path + "-big", saved = path + "-big.durable";
  const PoolFiles these{big.c_str(), saved.c_str(), ""};
  PoolSpec spec{.compatibility = ""};
  spec.region_bytes[kRegionPages] = 5000 * kPageSize;
  uint64_t last;
  {
    auto made = LocalPool::create(these, spec, &problem);
    ASSERT_TRUE(made.ok()) << problem.text;
    memset(gcl_test::pool_bytes(**made, page(4500)), 0x77, kPageSize);
    last = (*made)->page_address(page(4500)).offset();
  }
  ASSERT_TRUE(LocalPool::save_again(these, &problem).ok()) << problem.text;
  fs::remove(big);
  EXPECT_TRUE(LocalPool::open(these, &problem).ok()) << problem.text;
  fs::remove(big);
  flip(saved, last);
  EXPECT_EQ(LocalPool::open(these, &problem).error(), Errc::kCorrupt);
  EXPECT_NE(strstr(problem.text, "page 4500 of memory node 0"), nullptr) << problem.text;
  flip(saved, last);
  flip(saved, bytes_of_saved(fs::file_size(saved)) + kBlockBytes + 100);  // the second page of checksums
  EXPECT_EQ(LocalPool::open(these, &problem).error(), Errc::kCorrupt);
  EXPECT_NE(strstr(problem.text, "2041 could not be checked"), nullptr) << problem.text;
}

}  // namespace coherence

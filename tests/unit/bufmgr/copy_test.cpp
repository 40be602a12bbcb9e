// A word that is stored under a shared guard (a hint, which no version number tells of) is copied whole, whatever the
// length of the copy around it.
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <utility>

#include "bufmgr/copy.hpp"

namespace bufmgr {
namespace {

constexpr uint64_t kOnes = ~uint64_t{0};

alignas(kPageSize) std::byte page[kPageSize];

// Stores all ones and all zeros into the words of [from, to) by turns, until it is destroyed.
class Toggler {
 public:
  Toggler(uint32_t from, uint32_t to) : thread_([=, this] { run(from, to); }) {}
  ~Toggler() {
    stop_ = true;
    thread_.join();
  }

 private:
  void run(uint32_t from, uint32_t to) {
    for (uint64_t word = kOnes; !stop_; word = ~word)
      for (uint32_t at = from; at < to; at += 8) store_page_word(page + at, word);
  }
  std::atomic<bool> stop_ = false;
  std::thread thread_;
};

// Of a length that the compiler does not know: as rows are.
[[gnu::noipa]] void copy_row(std::byte* to, uint32_t from, uint32_t bytes) { copy_from_page(to, page, from, bytes); }

// How many of the whole words in `copy` are neither all ones nor all zeros.
int torn(const std::byte* copy, uint32_t bytes) {
  int count = 0;
  for (uint32_t at = 0; at + 8 <= bytes; at += 8) {
    uint64_t word;
    std::memcpy(&word, copy + at, 8);
    count += word != 0 && word != kOnes;
  }
  return count;
}

TEST(Copy, AWordIsNeverTornWhateverTheLength) {
  std::byte to[256];
  for (uint32_t in_line = 0; in_line < 64; in_line += 8)
    for (const uint32_t bytes : {9u, 12u, 20u, 28u, 36u, 61u, 68u, 100u, 127u}) {
      const uint32_t from = 1024 + in_line;
      std::memset(page, 0, sizeof page);
      int found = 0;
      {
        const Toggler toggler(from, from + bytes / 8 * 8);
        for (int turn = 0; turn < 200000; ++turn) {
          copy_row(to, from, bytes);
          found += torn(to, bytes);
        }
      }
      EXPECT_EQ(0, found) << bytes << " bytes from " << in_line;
    }
}

TEST(Copy, AWordOfAWholePageIsNeverTorn) {
  std::memset(page, 0, sizeof page);
  alignas(64) static std::byte to[kPageSize + 8];
  int found = 0;
  const Toggler toggler(4096 - 64, 4096 + 64);
  for (int turn = 0; turn < 20000; ++turn) {
    std::byte* at = to + 8 * (turn % 2);
    copy_whole_page(at, page);
    found += torn(at, kPageSize);
  }
  EXPECT_EQ(0, found);
}

TEST(Copy, CopiesWhatItIsAskedForAndNoMore) {
  for (uint32_t i = 0; i < kPageSize; ++i) page[i] = std::byte(i * 7 + i / 256);
  for (uint32_t offset = 0; offset < 24; ++offset)
    for (uint32_t bytes = 0; bytes < 100; ++bytes) {
      std::byte to[128];
      std::memset(to, 0x5a, sizeof to);
      copy_from_page(to + 8, page, offset, bytes);
      ASSERT_EQ(0, std::memcmp(to + 8, page + offset, bytes)) << offset << " " << bytes;
      for (uint32_t i = 0; i < 8; ++i) ASSERT_EQ(std::byte{0x5a}, to[i]);
      for (uint32_t i = 8 + bytes; i < sizeof to; ++i) ASSERT_EQ(std::byte{0x5a}, to[i]) << offset << " " << bytes;
    }
  std::byte last[3];
  copy_from_page(last, page, kPageSize - 3, 3);
  EXPECT_EQ(0, std::memcmp(last, page + kPageSize - 3, 3));
  static std::byte whole[kPageSize];
  copy_whole_page(whole, page);
  EXPECT_EQ(0, std::memcmp(whole, page, kPageSize));
}

// The parts of a page that begins like this.
void copy_parts_of(std::byte* to, const PageHeader& header) {
  for (uint32_t i = 0; i < kPageSize; ++i) page[i] = std::byte(i * 7 + i / 256);
  std::memcpy(page, &header, sizeof header);
  std::memset(to, 0x5a, kPageSize);
  copy_page_parts(to, page);
}

TEST(Copy, TheGapOfAPageIsLeftOut) {
  alignas(8) static std::byte to[kPageSize];
  for (uint16_t lower = kPageBody; lower < 200; lower = uint16_t(lower + 4))
    for (const uint32_t upper : {200u, 4096u, kPageSize - 8, kPageSize}) {
      copy_parts_of(to, {.type = PageType::kHeap, .lower = lower, .upper = uint16_t(upper), .special = kPageSize});
      ASSERT_EQ(0, std::memcmp(to, page, lower)) << lower;
      ASSERT_EQ(0, std::memcmp(to + upper, page + upper, kPageSize - upper)) << upper;
      for (uint32_t i = lower + 4; i < upper; ++i) ASSERT_EQ(std::byte{0x5a}, to[i]) << lower << " " << upper;
    }
}

TEST(Copy, OfAPageThatWasNeverFormattedThereIsOnlyTheHeader) {
  alignas(8) static std::byte to[kPageSize];
  copy_parts_of(to, {.version = 7});
  EXPECT_EQ(0, std::memcmp(to, page, kPageBody));
  for (uint32_t i = kPageBody; i < kPageSize; ++i) ASSERT_EQ(std::byte{0x5a}, to[i]);
}

TEST(Copy, AHeaderThatMakesNoSenseLeadsNowhereElse) {
  alignas(8) static std::byte to[kPageSize];
  for (const auto& [lower, upper] : {std::pair<uint16_t, uint16_t>{0, 4096}, {4096, 48}, {40, 0xffff}, {0xffff, 40}}) {
    copy_parts_of(to, {.type = PageType::kHeap, .lower = lower, .upper = upper});
    EXPECT_EQ(0, std::memcmp(to, page, kPageSize)) << lower << " " << upper;
  }
}

TEST(Copy, AWordOfAPagesPartsIsNeverTorn) {
  alignas(64) static std::byte to[kPageSize + 8];
  std::memset(page, 0, sizeof page);
  const PageHeader header{.type = PageType::kHeap, .lower = 2044, .upper = 2056, .special = kPageSize};
  std::memcpy(page, &header, sizeof header);
  int found = 0;
  const Toggler toggler(4096 - 64, 4096 + 64);
  for (int turn = 0; turn < 20000; ++turn) {
    std::byte* at = to + 8 * (turn % 2);
    copy_page_parts(at, page);
    found += torn(at + 2056, kPageSize - 2056);
  }
  EXPECT_EQ(0, found);
}

}  // namespace
}  // namespace bufmgr

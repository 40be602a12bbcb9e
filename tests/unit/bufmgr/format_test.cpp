// Bytes as they lie in logs and rings: what a build of before has written is read.  An author who changes the format
// gives it a number of its own (log.unknown-format-refused; docs/UPGRADING.md).
#include <gtest/gtest.h>

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "bufmgr/base/page.hpp"
#include "bufmgr/log/packing.hpp"
#include "bufmgr/log/record.hpp"
#include "bufmgr/log/redo_ring.hpp"

namespace bufmgr {
namespace {

using Bytes = std::vector<std::byte>;

Bytes bytes_of(std::string_view hex) {
  Bytes bytes;
  for (size_t i = 0; i < hex.size(); i += 2)
    bytes.push_back(std::byte(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16)));
  return bytes;
}

// A record with steps of all kinds: in a ring, of format 4, behind its frame; in a log, of format 5.
constexpr std::string_view kHeadInRing = "7f2666f1530000007468e259d1480000";  // frame, header
constexpr std::string_view kHeadInLog = "7568e2b3c5c604";                     // header
constexpr std::string_view kPageParts =
    "d90402e80703"            // page 2:300, version 1000
    "7b80048002"              // copied
    "f808648081828384858687"  // bytes
    "88898a8b8c8d8e8f909192939495969798999a9b9c"
    "9d9e9fa0a1a2a3a4a5a6a7"
    "14808182"                // bytes behind them
    "0a0102"                  // page 5, version 1
    "f910a01f08050000000000"  // packed
    "fa4440";                 // zeros
constexpr uint64_t kSequence = 0x123456789a;

struct Step {
  RecordStep::Kind kind;
  uint32_t offset, bytes, source;
  bool operator==(const Step&) const = default;
};

void expect_example(std::span<const std::byte> record) {
  RecordReader reader(record);
  EXPECT_EQ(reader.header().node, 7u);
  std::vector<PageId> pages;
  std::vector<uint64_t> versions;
  std::vector<Step> steps;
  Bytes plain, packed(48);
  while (const RecordPage* page = reader.next_page()) {
    pages.push_back(page->page);
    versions.push_back(page->version);
    while (const RecordStep* step = reader.next_step()) {
      steps.push_back({step->kind, step->offset, step->bytes, step->kind == RecordStep::kCopy ? step->source : 0u});
      if (step->kind == RecordStep::kBytes) plain.insert(plain.end(), step->data.begin(), step->data.end());
      if (step->kind == RecordStep::kPacked) {
        const std::byte* const end = step->data.data() + step->data.size();
        ASSERT_NE(unpack(step->data.data(), end, packed.data(), step->bytes), nullptr);
      }
    }
  }
  EXPECT_FALSE(reader.corrupt());
  EXPECT_EQ(pages, (std::vector<PageId>{PageId::at({2}, 300), PageId::at({0}, 5)}));
  EXPECT_EQ(versions, (std::vector<uint64_t>{1000, 1}));
  using enum RecordStep::Kind;
  EXPECT_EQ(steps, (std::vector<Step>{{kCopy, 512, 16, 256},
                                      {kBytes, 100, 40, 0},
                                      {kBytes, 140, 3, 0},
                                      {kPacked, 4000, 48, 0},
                                      {kZero, 64, 100, 0}}));
  Bytes expected;
  for (int i = 0; i < 43; ++i) expected.push_back(std::byte(0x80 + i % 40));
  EXPECT_EQ(plain, expected);
  Bytes sparse(48);
  sparse[3] = std::byte{5};
  EXPECT_EQ(packed, sparse);
}

TEST(Format, ARedoRecordThatWasWrittenBeforeIsRead) {
  const Bytes framed = bytes_of(std::string(kHeadInRing) + std::string(kPageParts));
  const auto record = framed_record(framed, kSequence);
  ASSERT_TRUE(record.ok());
  expect_example(*record);
  const Bytes logged = bytes_of(std::string(kHeadInLog) + std::string(kPageParts));
  ASSERT_TRUE(check_format(logged).ok());
  EXPECT_EQ(RecordReader(logged).header().sequence, kSequence);
  expect_example(logged);
}

TEST(Format, OfFramesAndHeaders) {
  EXPECT_EQ((std::vector<size_t>{sizeof(RecordFrame), sizeof(RecordHeader), sizeof(PageHeader), kRingHeaderBytes}),
            (std::vector<size_t>{8, 8, 40, 4096}));
}

}  // namespace
}  // namespace bufmgr

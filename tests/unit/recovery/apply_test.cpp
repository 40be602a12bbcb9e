// One record on one image, by version.
#include "recovery/apply.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "bufmgr/log/record_writer.hpp"

namespace recovery {
namespace {

using bufmgr::PageId;
using bufmgr::RecordReader;
using coherence::Errc;

class Apply : public ::testing::Test {
 protected:
  static constexpr uint64_t kVersion = 300;
  // Makes version 301 of page 2:77 with a copy, zeros, and bytes, and changes page 5 besides.
  Apply() {
    for (uint32_t i = 40; i < coherence::kPageSize; ++i) image_[i] = std::byte(i % 251);
    set_version(kVersion);
    bufmgr::RecordWriter writer(buffer_, {3});
    writer.page(PageId{5}, 1, 1);
    writer.zero(8, 8);
    writer.page(id_, kVersion + 1, 4);
    writer.copy(1000, 500, 900);  // overlaps its source
    writer.zero(1100, 20);
    writer.bytes(1120, text_, 6);
    writer.bytes(40, sparse_, 24);
    const auto framed = writer.finish();
    bufmgr::seal_record(framed, 12345);
    record_ = framed.subspan(sizeof(bufmgr::RecordFrame));
  }
  void set_version(uint64_t version) { std::memcpy(image_, &version, sizeof version); }
  uint64_t version() const {
    uint64_t version;
    std::memcpy(&version, image_, sizeof version);
    return version;
  }
  coherence::Result<Applied> apply_it() {
    RecordReader reader(record_);
    EXPECT_NE(reader.next_page(), nullptr);
    const bufmgr::RecordPage* page = reader.next_page();
    EXPECT_TRUE(page != nullptr && page->page == id_);
    return apply(reader, *page, image_, &problem_);
  }

  const PageId id_ = PageId::at({2}, 77);
  const std::byte text_[6] = {std::byte{1}, std::byte{2}, std::byte{3}, std::byte{4}, std::byte{5}, std::byte{6}};
  const std::byte sparse_[24] = {std::byte{7}, {}, {}, std::byte{8}};
  alignas(8) std::byte image_[coherence::kPageSize] = {};
  std::byte buffer_[1024] = {};
  std::span<const std::byte> record_;
  coherence::Problem problem_;
};

TEST_F(Apply, TheNextVersionIsMade) {
  auto expected = std::make_unique<std::byte[]>(coherence::kPageSize);
  std::memcpy(expected.get(), image_, coherence::kPageSize);
  std::memmove(expected.get() + 1000, expected.get() + 900, 500);
  std::memset(expected.get() + 1100, 0, 20);
  std::memcpy(expected.get() + 1120, text_, 6);
  std::memcpy(expected.get() + 40, sparse_, 24);
  const auto applied = apply_it();
  ASSERT_TRUE(applied.ok()) << problem_.text;
  EXPECT_EQ(*applied, Applied::kChanged);
  EXPECT_EQ(version(), kVersion + 1);
  EXPECT_EQ(std::memcmp(image_ + 8, expected.get() + 8, coherence::kPageSize - 8), 0);
}

TEST_F(Apply, WhatIsThereAlreadyStays) {
  for (const uint64_t there : {kVersion + 1, kVersion + 2, kVersion + 1000}) {
    set_version(there);
    const auto applied = apply_it();
    ASSERT_TRUE(applied.ok());
    EXPECT_EQ(*applied, Applied::kAlreadyThere);
    EXPECT_EQ(version(), there);
    EXPECT_EQ(image_[1120], std::byte(1120 % 251));
  }
}

TEST_F(Apply, AMissingRecordIsAnErrorThatNamesPageAndVersions) {
  set_version(kVersion - 1);
  const auto applied = apply_it();
  EXPECT_EQ(applied.error(), Errc::kNotFound);
  EXPECT_EQ(std::string(problem_.text),
            "page 2:77 has version 299, and the next record of it that was found makes version 301 "
            "(node 3, sequence 12345): the redo between them is missing");
  EXPECT_EQ(version(), kVersion - 1);
  EXPECT_EQ(image_[1120], std::byte(1120 % 251));
}

TEST_F(Apply, StepsThatMakeNoSenseChangeNothing) {
  // The bytes that the last step has end before it does.
  record_ = record_.first(record_.size() - 1);
  const auto applied = apply_it();
  EXPECT_EQ(applied.error(), Errc::kCorrupt);
  EXPECT_EQ(std::string(problem_.text), "the record of node 3, sequence 12345, makes no sense at page 2:77");
  EXPECT_EQ(version(), kVersion);
  EXPECT_EQ(image_[1120], std::byte(1120 % 251));
}

}  // namespace
}  // namespace recovery

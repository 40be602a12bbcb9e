// Redo that the version before has written: its own bytes make the pages that they made then, and a log may go on with
// today's (log.format-per-record, log.reader-of-before).  golden/README.md says how the bytes came about.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "bufmgr/log/record_writer.hpp"
#include "coherence/base/crc32c.hpp"
#include "recovery/log_merge.hpp"
#include "tests/support/redo_shadow.hpp"

namespace recovery {
namespace {

using bufmgr::PageId;
using coherence::Errc;
using coherence::Result;
using gcl_test::PageBytes;
using Record = std::vector<std::byte>;

constexpr uint8_t kNode = 7;
constexpr uint64_t kFirstSequence = 0x200001000;

std::vector<std::byte> golden(const std::string& name) {
  std::ifstream in(std::filesystem::path(GOLDEN) / name, std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(in), {});
  EXPECT_FALSE(text.empty()) << name;
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

// Of a log: the length of each comes before it.
std::vector<Record> golden_log() {
  std::vector<Record> records;
  const auto all = golden("redo_v3.log");
  uint32_t bytes;
  for (size_t at = 0; at + sizeof bytes <= all.size(); at += bytes) {
    std::memcpy(&bytes, &all[at], sizeof bytes);
    at += sizeof bytes;
    if (bytes > all.size() - at) ADD_FAILURE() << "the file is cut off";
    records.emplace_back(&all[at], &all[at] + bytes);
  }
  return records;
}

class Kept final : public LogSource {
 public:
  explicit Kept(std::vector<Record> records) : records_(std::move(records)) {}
  Result<std::span<const std::byte>> next() override {
    if (at_ == records_.size()) return Errc::kNotFound;
    return std::span<const std::byte>(records_[at_++]);
  }
  void put_back() override { --at_; }

 private:
  std::vector<Record> records_;
  size_t at_ = 0;
};

// As the journal keeps them: framed, one behind the other.
class Ring final : public LogSource {
 public:
  explicit Ring(std::vector<std::byte> framed) : framed_(std::move(framed)) {}
  Result<std::span<const std::byte>> next() override {
    if (at_ == framed_.size()) return Errc::kNotFound;
    const auto record = bufmgr::framed_record(std::span(framed_).subspan(at_), kFirstSequence + at_);
    if (!record) return record.error() == Errc::kNotFound ? Errc::kCorrupt : record.error();
    at_ += sizeof(bufmgr::RecordFrame) + record->size();
    ++records_;
    return *record;
  }
  size_t records() const { return records_; }

 private:
  std::vector<std::byte> framed_;
  size_t at_ = 0, records_ = 0;
};

class FormerRedo : public ::testing::Test, public PageImages {
 protected:
  Result<std::byte*> image(PageId page) override { return images_[page.raw].bytes; }
  coherence::Status merge(LogSource& log) {
    LogSource* logs[] = {&log};
    return apply_logs(logs, *this, &problem_);
  }
  // What the former version made of the same redo.
  void expect_pages() {
    std::ifstream in(std::filesystem::path(GOLDEN) / "redo_v3.pages");
    unsigned node;
    uint64_t number, version;
    std::string checksum;
    size_t pages = 0;
    for (; in >> node >> number >> version >> checksum; ++pages) {
      const auto found = images_.find(PageId::at({uint8_t(node)}, number).raw);
      ASSERT_NE(found, images_.end()) << node << ":" << number;
      EXPECT_EQ(found->second.header().version, version) << node << ":" << number;
      EXPECT_EQ(coherence::crc32c(0, found->second.bytes, coherence::kPageSize), std::stoul(checksum, nullptr, 16))
          << node << ":" << number;
    }
    EXPECT_EQ(pages, 4u);
    EXPECT_EQ(images_.size(), pages);
  }
  // A change of one of these pages, as today's version logs it.
  Record logged_today(uint64_t sequence) {
    Record buffer(4096);
    bufmgr::RecordWriter writer(buffer.data(), {kNode});
    const PageId page{images_.begin()->first};
    writer.page(page, images_.begin()->second.header().version + 1, 2);
    writer.copy(1000, 200, 2000);
    writer.bytes(4000, std::as_bytes(std::span("today")).data(), 5);
    const auto record = bufmgr::record_for_log(writer.finish(), sequence);
    return {record.begin(), record.end()};
  }
  static uint32_t format_of(const Record& record) { return uint32_t(record[0]) & 15; }
  // Of a record that says so of itself.
  std::string refusal(uint32_t format) {
    auto records = golden_log();
    Record& last = records.back();
    last[0] = (last[0] & std::byte{0xf0}) | std::byte(format);
    Kept log(records);
    EXPECT_EQ(merge(log).error(), Errc::kIncompatible);
    return problem_.text;
  }

  std::map<uint64_t, PageBytes> images_;
  coherence::Problem problem_;
};

TEST_F(FormerRedo, OfALogMakesThePagesThatItMadeThen) {
  const auto records = golden_log();
  ASSERT_EQ(records.size(), 40u);
  size_t copies = 0, packed = 0;
  for (const Record& record : records) {
    ASSERT_EQ(format_of(record), 3u);
    bufmgr::RecordReader reader(record);
    EXPECT_EQ(reader.header().node, kNode);
    while (reader.next_page() != nullptr)
      while (const bufmgr::RecordStep* step = reader.next_step()) {
        copies += step->kind == bufmgr::RecordStep::kCopy;
        packed += step->kind == bufmgr::RecordStep::kPacked;
      }
    ASSERT_FALSE(reader.corrupt());
  }
  EXPECT_GT(copies, 20u);
  EXPECT_GT(packed, 20u);
  EXPECT_EQ(bufmgr::RecordReader(records[0]).header().sequence, kFirstSequence);
  Kept log(records);
  ASSERT_TRUE(merge(log).ok()) << problem_.text;
  expect_pages();
}

TEST_F(FormerRedo, OfARingMakesTheSame) {
  Ring ring(golden("redo_v3.ring"));
  ASSERT_TRUE(merge(ring).ok()) << problem_.text;
  EXPECT_EQ(ring.records(), 40u);
  expect_pages();
}

TEST_F(FormerRedo, OfTooFewBytesNoMoreIsReadThanThereAre) {
  for (const Record& record : golden_log())
    for (size_t bytes = 0; bytes < record.size(); bytes += 3) {
      const Record part(record.begin(), record.begin() + ptrdiff_t(bytes));  // AddressSanitizer sees behind its end
      bufmgr::RecordReader reader(part);
      while (reader.next_page() != nullptr) {
      }
    }
}

// log.format-per-record
TEST_F(FormerRedo, ALogGoesOnWithTodays) {
  auto records = golden_log();
  {
    Kept before(records);
    ASSERT_TRUE(merge(before).ok()) << problem_.text;
  }
  auto expected = images_;
  PageBytes& page = expected.begin()->second;
  std::memmove(page.bytes + 1000, page.bytes + 2000, 200);
  std::memcpy(page.bytes + 4000, "today", 5);
  const uint64_t version = page.header().version + 1;
  std::memcpy(page.bytes, &version, sizeof version);
  records.push_back(logged_today(kFirstSequence + (uint64_t{1} << 20)));
  EXPECT_EQ(format_of(records.back()), bufmgr::RecordHeader::kBrief);
  images_.clear();
  Kept both(records);
  ASSERT_TRUE(merge(both).ok()) << problem_.text;
  for (const auto& [raw, image] : expected)
    EXPECT_EQ(std::memcmp(images_[raw].bytes, image.bytes, coherence::kPageSize), 0);
}

// log.unknown-format-refused
TEST_F(FormerRedo, OfTheVersionBeforeThatOneIsRefused) {
  EXPECT_EQ(
      refusal(2),
      "a redo record has format 2, and formats 3 to 5 are read here; an earlier version of gcl wrote it: start the "
      "cluster with that one, stop all primaries in order, and upgrade then");
}

TEST_F(FormerRedo, OfALaterVersionIsRefused) {
  EXPECT_EQ(
      refusal(6),
      "a redo record has format 6, and formats 3 to 5 are read here; a later version of gcl wrote it: use that one");
}

}  // namespace
}  // namespace recovery

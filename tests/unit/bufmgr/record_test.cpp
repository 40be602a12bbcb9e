// The format of redo records: what is written is read, and bytes that are no record are not taken for one.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "bufmgr/log/record_writer.hpp"
#include "bufmgr/log/redo_ring.hpp"
#include "tests/support/cluster_fixture.hpp"
#include "tests/support/longer.hpp"

namespace bufmgr {
namespace {

using coherence::Errc;
using Bytes = std::vector<std::byte>;

Bytes random_bytes(std::mt19937_64& random, uint32_t count, uint32_t zeros_in_eight) {
  Bytes bytes(count);
  for (auto& b : bytes) b = std::byte(random() % 8 < zeros_in_eight ? 0 : random());
  while (count >= 16 && random() % 2 == 0) {  // a run, in the middle of others perhaps
    const size_t from = random() % (count - 8);
    std::fill_n(bytes.begin() + ptrdiff_t(from), random() % (count - from), bytes[from]);
  }
  return bytes;
}

TEST(Packing, WhatIsPackedIsUnpacked) {
  std::mt19937_64 random(gcl_test::seed(1));
  for (int round = 0; round < 20000; ++round) {
    const auto count = uint32_t(random() % 300);
    const Bytes bytes = random_bytes(random, count, uint32_t(random() % 9));
    Bytes packed(2 * count + 64);
    const uint32_t limit = 2 * count + 2;
    const uint32_t size = pack(packed.data(), bytes.data(), count, limit);
    if (count == 0) continue;
    ASSERT_GT(size, 0u);
    Bytes unpacked(count, std::byte{0x55});
    ASSERT_EQ(unpack(packed.data(), packed.data() + size, unpacked.data(), count), packed.data() + size);
    ASSERT_EQ(unpacked, bytes);
    ASSERT_EQ(unpack(packed.data(), packed.data() + size, nullptr, count), packed.data() + size);
    // Of fewer bytes it does not read beyond the end.
    ASSERT_EQ(unpack(packed.data(), packed.data() + size - 1, nullptr, count), nullptr);
  }
}

TEST(Packing, ItGivesUpWhereNothingIsWon) {
  Bytes dense(200);
  for (size_t i = 0; i < dense.size(); ++i) dense[i] = std::byte(i + 1);
  Bytes packed(400, std::byte{0x77});
  EXPECT_EQ(pack(packed.data(), dense.data(), 7, 7), 0u);
  EXPECT_EQ(pack(packed.data(), dense.data(), 200, 200), 0u);
  for (uint32_t limit = 1; limit < 250; ++limit) {
    std::fill(packed.begin(), packed.end(), std::byte{0x77});
    (void)pack(packed.data(), dense.data(), 200, limit);
    for (size_t at = limit + kPackingSlack; at < packed.size(); ++at) ASSERT_EQ(packed[at], std::byte{0x77}) << limit;
  }
  dense.resize(199);  // bytes of another word come again, once
  std::memcpy(dense.data() + 88, dense.data() + 80, 8);
  EXPECT_EQ(pack(packed.data(), dense.data(), 192, 192), 0u);
  const Bytes sparse(200);
  EXPECT_EQ(pack(packed.data(), sparse.data(), 200, 200), 25u);
}

TEST(Packing, WhatComesAgainIsSaidOnce) {
  std::string text = "some text" + std::string(84, ' ') + "and more of it, that is no run" + std::string(1200, 'x');
  const auto* const bytes = reinterpret_cast<const std::byte*>(text.data());
  Bytes packed(2 * text.size());
  const auto count = uint32_t(text.size());
  const uint32_t size = pack(packed.data(), bytes, count, count);
  EXPECT_GT(size, 0u);
  EXPECT_LE(size, 110u);
  std::string unpacked(text.size(), '?');
  auto* const to = reinterpret_cast<std::byte*>(unpacked.data());
  ASSERT_EQ(unpack(packed.data(), packed.data() + size, to, count), packed.data() + size);
  EXPECT_EQ(unpacked, text);
  // More repetitions than there is room for are no packed bytes.
  EXPECT_EQ(unpack(packed.data(), packed.data() + size, nullptr, count - 1), nullptr);
}

TEST(Packing, VarintsOfAllLengths) {
  for (uint32_t bit = 0; bit < 64; ++bit) {
    for (const uint64_t value : {uint64_t{1} << bit, (uint64_t{1} << bit) - 1, ~uint64_t{0} >> bit}) {
      std::byte bytes[kVarintMax];
      const std::byte* const end = put_varint(bytes, value);
      uint64_t read;
      EXPECT_EQ(get_varint(bytes, end, &read), end);
      EXPECT_EQ(read, value);
      EXPECT_EQ(get_varint(bytes, end - 1, &read), nullptr);
    }
  }
}

struct Written {
  PageId page;
  uint64_t version;
  struct Step {
    RecordStep::Kind kind;  // kBytes for packed ones, too
    uint32_t offset, bytes, source;
    Bytes content;
    bool operator==(const Step&) const = default;
  };
  std::vector<Step> steps;
  bool operator==(const Written&) const = default;
};

std::vector<Written> random_record(std::mt19937_64& random, RecordWriter& to) {
  auto below = [&](uint64_t n) { return uint32_t(random() % n); };
  std::vector<Written> pages(below(8) + 1);
  for (Written& page : pages) {
    const bool small = below(2) == 0;
    page.page = PageId::at({uint8_t(small ? 0 : below(64))}, random() >> (small ? 50 : 24));
    page.version = random() >> below(64);
    page.steps.resize(below(10) + 1);
    to.page(page.page, page.version, uint32_t(page.steps.size()));
    uint32_t end = 8;
    for (auto& step : page.steps) {
      step.bytes = below(3) == 0 ? below(2000) + 1 : below(60) + 1;
      const bool adjacent = below(3) == 0 && end + step.bytes <= kPageSize;
      step.offset = adjacent ? end : 8 + below(kPageSize - 7 - step.bytes);
      step.source = 0;
      end = step.offset + step.bytes;
      switch (below(4)) {
        case 0:
          step.kind = RecordStep::kZero;
          to.zero(step.offset, step.bytes);
          break;
        case 1:
          step.kind = RecordStep::kCopy;
          step.source = 8 + below(kPageSize - 7 - step.bytes);
          to.copy(step.offset, step.bytes, step.source);
          break;
        default:
          step.kind = RecordStep::kBytes;
          step.content = random_bytes(random, step.bytes, below(9));
          to.bytes(step.offset, step.content.data(), step.bytes);
      }
    }
  }
  return pages;
}

std::vector<Written> read_record(std::span<const std::byte> record, bool* corrupt) {
  std::vector<Written> pages;
  RecordReader reader(record);
  while (const RecordPage* page = reader.next_page()) {
    pages.push_back({page->page, page->version, {}});
    while (const RecordStep* step = reader.next_step()) {
      EXPECT_LE(step->end(), kPageSize);
      Written::Step read{step->kind, step->offset, step->bytes, step->source, {}};
      if (step->kind == RecordStep::kBytes) read.content.assign(step->data.begin(), step->data.end());
      if (step->kind == RecordStep::kPacked) {
        read.kind = RecordStep::kBytes;
        read.content.resize(step->bytes);
        EXPECT_NE(unpack(step->data.data(), step->data.data() + step->data.size(), read.content.data(), step->bytes),
                  nullptr);
      }
      pages.back().steps.push_back(read);
    }
  }
  *corrupt = reader.corrupt();
  return pages;
}

TEST(Record, WhatIsWrittenIsRead) {
  std::mt19937_64 random(gcl_test::seed(2));
  Bytes buffer(1 << 18);
  for (int round = 0; round < 2000; ++round) {
    RecordWriter writer(buffer.data(), {uint8_t(round % 58)});
    const auto written = random_record(random, writer);
    const std::span<std::byte> framed = writer.finish();
    const uint64_t sequence = random() >> (10 + random() % 50);
    seal_record(framed, sequence);
    const Bytes copy(framed.begin(), framed.end());
    auto record = framed_record({buffer.data(), framed.size() + 100}, sequence);
    ASSERT_TRUE(record.ok());
    ASSERT_EQ(record->size() + sizeof(RecordFrame), framed.size()) << "what lies behind it does not count";
    ASSERT_EQ(framed_record(framed.first(framed.size() - 1), sequence).error(), Errc::kNotFound);
    bool corrupt;
    ASSERT_EQ(read_record(*record, &corrupt), written);
    ASSERT_FALSE(corrupt);
    EXPECT_EQ(RecordReader(*record).header().node, uint64_t(round % 58));
    EXPECT_EQ(RecordReader(*record).header().sequence, sequence);
    // All pages are walked, whether or not their steps are.
    RecordReader pages(*record);
    size_t count = 0;
    while (pages.next_page() != nullptr) ++count;
    EXPECT_EQ(count, written.size());
    // As a log has it.
    Bytes to_log = copy;
    const auto logged = record_for_log(to_log, sequence);
    ASSERT_LT(logged.size(), record->size() + 2);
    ASSERT_TRUE(check_format(logged).ok());
    ASSERT_EQ(read_record(logged, &corrupt), written);
    ASSERT_FALSE(corrupt);
    EXPECT_EQ(RecordReader(logged).header().node, uint64_t(round % 58));
    EXPECT_EQ(RecordReader(logged).header().sequence, sequence);
  }
}

TEST(Record, OfAnyBytesNoMoreIsReadThanThereAre) {
  std::mt19937_64 random(gcl_test::seed(3));
  Bytes buffer(1 << 18);
  int corrupt_ones = 0;
  for (int round = 0; round < 3000; ++round) {
    RecordWriter writer(buffer.data(), {1});
    (void)random_record(random, writer);
    const auto framed = writer.finish();
    const bool brief = round % 2 == 0;
    const auto whole = brief ? record_for_log(framed, random() >> 10) : framed.subspan(sizeof(RecordFrame));
    // In memory of its own, so that AddressSanitizer sees what is read behind it.
    Bytes record(whole.begin(), whole.end());
    const size_t from = brief ? 2 : sizeof(RecordHeader);
    for (int i = 0; i < 3; ++i) record[from + random() % (record.size() - from)] = std::byte(random());
    bool corrupt;
    (void)read_record(record, &corrupt);
    corrupt_ones += corrupt;
  }
  EXPECT_GT(corrupt_ones, 100);
}

Bytes small_framed(uint64_t sequence) {
  Bytes buffer(256);
  RecordWriter writer(buffer.data(), {1});
  writer.page(PageId{7}, 9, 1);
  writer.bytes(100, Bytes(32, std::byte{9}).data(), 32);
  buffer.resize(writer.finish().size());
  seal_record(buffer, sequence);
  return buffer;
}

TEST(Record, ACorruptOneIsNotSound) {
  Bytes framed = small_framed(4096);
  EXPECT_TRUE(framed_record(framed, 4096).ok());
  EXPECT_EQ(framed_record(framed, 8192).error(), Errc::kNotFound);
  for (auto& byte : framed) {
    byte ^= std::byte{1};
    EXPECT_EQ(framed_record(framed, 4096).error(), Errc::kNotFound);
    byte ^= std::byte{1};
  }
}

void set_format(Bytes& framed, uint32_t format) {
  RecordHeader header;
  memcpy(&header, framed.data() + sizeof(RecordFrame), sizeof header);
  header.format = format & 15;
  memcpy(framed.data() + sizeof(RecordFrame), &header, sizeof header);
  seal_record(framed, header.sequence);
}

// log.unknown-format-refused
TEST(Record, AnotherFormatIsRefused) {
  Bytes framed = small_framed(0);
  const auto record = std::span(framed).subspan(sizeof(RecordFrame));
  for (uint32_t format = 0; format < 16; ++format) {
    SCOPED_TRACE(format);
    set_format(framed, format);
    const bool of_ring = format == 3 || format == 4, read = of_ring || format == 5;
    EXPECT_EQ(framed_record(framed, 0).error(), of_ring ? Errc::kOk : Errc::kIncompatible);
    // What an earlier lap has left, of whatever format, is a hole.
    EXPECT_EQ(framed_record(framed, 8).error(), Errc::kNotFound);
    coherence::Problem problem;
    EXPECT_EQ(check_format(record, &problem).error(), read ? Errc::kOk : Errc::kIncompatible);
    EXPECT_EQ(check_format(record).ok(), read);
    if (read) continue;  // bytes of one format make no sense as another's
    EXPECT_EQ(std::string(problem.text), "a redo record has format " + std::to_string(format) +
                                             ", and formats 3 to 5 are read here; " +
                                             (format < 3 ? "an earlier version of gcl wrote it: start the cluster with "
                                                           "that one, stop all primaries in order, and upgrade then"
                                                         : "a later version of gcl wrote it: use that one"));
    bool corrupt;
    EXPECT_TRUE(read_record(record, &corrupt).empty());
    EXPECT_TRUE(corrupt);
  }
}

TEST(Record, OfTooFewBytesNoHeaderIsRead) {
  Bytes framed = small_framed(uint64_t{1} << 40);
  const auto record = record_for_log(framed, uint64_t{1} << 40);
  for (size_t bytes = 0; bytes < 7; ++bytes) EXPECT_EQ(check_format(record.first(bytes)).error(), Errc::kCorrupt);
  EXPECT_TRUE(check_format(record).ok());
}

TEST(Record, ARingWithAnotherFormatIsRefusedNotShort) {
  gcl_test::Cluster cluster({.nodes = 1, .workers = false});
  auto session = cluster.session(0);
  BufferPool& pool = cluster.pool(0);
  const RegionSpan ring = pool.ring_of({0});
  auto put = [&](const Bytes& record, uint64_t at) {
    coherence::Batch batch(ring.at.node());
    batch.write(ring.at + kRingHeaderBytes + at, record.data(), uint32_t(record.size()));
    ASSERT_TRUE(session->memory().run(batch).ok());
  };
  const uint64_t first = pool.ring().head();
  ASSERT_EQ(first % pool.ring().data_bytes(), 0u);  // log.lap-per-incarnation
  const Bytes good = small_framed(first);
  Bytes other = small_framed(first + good.size());
  set_format(other, RecordHeader::kFormat + 1);
  put(good, 0);
  put(other, good.size());
  auto reader = RingReader::open(session->memory(), ring.at, ring.bytes);
  ASSERT_TRUE(reader.ok());
  Bytes buffer(kMiniRecordMax);
  EXPECT_TRUE(reader->next(session->memory(), buffer).ok());
  EXPECT_EQ(reader->next(session->memory(), buffer).error(), Errc::kIncompatible);
  EXPECT_EQ(reader->position(), first + good.size());
}

}  // namespace
}  // namespace bufmgr

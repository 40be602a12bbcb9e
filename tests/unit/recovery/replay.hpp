// Replaying logs as a merge of several nodes' logs does: page by page, in the order of versions.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <tuple>
#include <vector>

#include "bufmgr/log/redo_ring.hpp"
#include "bufmgr/mini_transaction.hpp"
#include "recovery/apply.hpp"
#include "tests/support/redo_shadow.hpp"

namespace recovery_test {

using gcl_test::PageBytes;
using Record = std::vector<std::byte>;
using Images = std::map<uint64_t, PageBytes>;  // by raw page id

// The records of all nodes' logs, in no order: that comes from versions alone.
inline std::vector<Record> logged(gcl_test::Cluster& cluster) {
  std::vector<Record> records;
  for (int n = 0; n < cluster.nodes(); ++n) {
    for (Record& record : cluster.log(n).records()) {
      bufmgr::RecordReader reader(record);
      EXPECT_EQ(reader.header().node, uint32_t(n));
      records.push_back(std::move(record));
    }
  }
  std::shuffle(records.begin(), records.end(), std::mt19937(5));
  return records;
}

// What a survivor finds in a node's ring.
inline std::vector<Record> ring_of(bufmgr::BufferPool& pool, bufmgr::Session& reader_session, coherence::NodeId node) {
  std::vector<Record> records;
  const bufmgr::RegionSpan ring = pool.ring_of(node);
  auto reader = bufmgr::RingReader::open(reader_session.memory(), ring.at, ring.bytes);
  EXPECT_TRUE(reader.ok());
  std::vector<std::byte> buffer(bufmgr::kMiniRecordMax);
  for (;;) {
    auto record = reader->next(reader_session.memory(), buffer);
    if (!record) break;
    records.emplace_back(record->begin(), record->end());
  }
  EXPECT_EQ(reader->position(), pool.ring().head());
  return records;
}

// Applies the records to the images; pages that have none are left out, or come into being as zeros.
enum class Unknown : uint8_t { kLeftOut, kFromZeros };
inline void replay(Images& images, const std::vector<Record>& records, Unknown unknown = Unknown::kLeftOut) {
  struct Step {
    uint64_t page, version;
    const Record* record;
    bool operator<(const Step& o) const { return std::tie(page, version) < std::tie(o.page, o.version); }
  };
  std::vector<Step> steps;
  for (const Record& record : records) {
    bufmgr::RecordReader reader(record);
    while (const bufmgr::RecordPage* page = reader.next_page())
      steps.push_back({page->page.raw, page->version, &record});
    ASSERT_FALSE(reader.corrupt());
  }
  std::sort(steps.begin(), steps.end());
  for (const Step& step : steps) {
    if (unknown == Unknown::kLeftOut && !images.contains(step.page)) continue;
    bufmgr::RecordReader reader(*step.record);
    while (const bufmgr::RecordPage* page = reader.next_page()) {
      if (page->page.raw != step.page) continue;
      coherence::Problem problem;
      EXPECT_TRUE(recovery::apply(reader, *page, images[step.page].bytes, &problem)) << problem.text;
    }
  }
}

// Copies the page as it is now.
inline void copy_to(bufmgr::BufferPool& pool, bufmgr::Session& session, bufmgr::PageId id, PageBytes* to) {
  ASSERT_TRUE(pool.copy_page(session, id, to->bytes));
}

inline void expect_replayed(bufmgr::BufferPool& pool, bufmgr::Session& session, bufmgr::PageId id,
                            const PageBytes& replayed) {
  PageBytes now;
  copy_to(pool, session, id, &now);
  gcl_test::expect_equal(id, now, replayed);
}

}  // namespace recovery_test

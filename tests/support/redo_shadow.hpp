// RedoShadow: the pages of a cluster as redo alone makes them, out of nothing.  Each record is applied as it is
// appended to its node's log; when the pool has been left in order, its pages are compared with these.  So any page
// that was changed without redo shows, in whatever test it happens.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <mutex>
#include <span>
#include <sstream>
#include <string>
#include <unordered_map>

#include "bufmgr/base/page.hpp"
#include "coherence/inspect/pool_view.hpp"
#include "extension/engine/heap/heap_page.hpp"
#include "recovery/apply.hpp"
#include "tests/support/cluster_fixture.hpp"

namespace gcl_test {

struct PageBytes {
  alignas(8) std::byte bytes[coherence::kPageSize] = {};
  const bufmgr::PageHeader& header() const { return *reinterpret_cast<const bufmgr::PageHeader*>(bytes); }
};

inline std::string word(const PageBytes& page, uint32_t at) {
  uint64_t value = 0;
  std::memcpy(&value, page.bytes + (at < coherence::kPageSize ? at / 8 * 8 : 0), sizeof value);
  std::ostringstream text;
  text << std::hex << value;
  return text.str();
}

// Where the replayed page is not what the page is, hints apart; kPageSize: nowhere.
inline uint32_t differs_at(const PageBytes& page, const PageBytes& replayed) {
  if (page.header().type == bufmgr::PageType::kHeap) return engine::replay_differs_at(page.bytes, replayed.bytes);
  for (uint32_t at = 0; at < coherence::kPageSize; ++at)
    if (page.bytes[at] != replayed.bytes[at]) return at;
  return coherence::kPageSize;
}

inline void expect_equal(bufmgr::PageId id, const PageBytes& page, const PageBytes& replayed) {
  const uint32_t at = differs_at(page, replayed);
  EXPECT_EQ(at, coherence::kPageSize) << "page " << int(id.node().value) << ":" << id.number() << " of type "
                                      << int(page.header().type) << ", version " << page.header().version
                                      << ", replayed version " << replayed.header().version << ", at " << at << ": "
                                      << word(page, at) << " is replayed as " << word(replayed, at);
}

class RedoShadow final : public ClusterWatcher {
 public:
  void appended(std::span<const std::byte> record) override {
    bufmgr::RecordReader reader(record);
    while (const bufmgr::RecordPage* page = reader.next_page()) {
      Part& part = part_of(page->page);
      std::lock_guard hold(part.mutex);
      auto& image = part.pages[page->page.raw];
      if (!image) image = std::make_unique<PageBytes>();
      coherence::Problem problem;
      const auto applied = recovery::apply(reader, *page, image->bytes, &problem);
      if (!applied || *applied != recovery::Applied::kChanged)
        ADD_FAILURE() << "version " << page->version << problem.text;
    }
    EXPECT_FALSE(reader.corrupt());
  }

  void left(const std::string& path) override {
    coherence::Problem problem;
    auto view = coherence::PoolView::open(path.c_str(), &problem);
    ASSERT_TRUE(view.ok()) << problem.text;
    const uint32_t memory_nodes = (*view)->header().memory_nodes;
    PageBytes page;
    const PageBytes never_changed;
    for (uint32_t m = 0; m < memory_nodes; ++m) {
      const coherence::MemoryNodeId node{uint8_t(m)};
      for (uint64_t number = 0; number < (*view)->pages(node); ++number) {
        const auto id = bufmgr::PageId::at(node, number);
        ASSERT_TRUE((*view)->page(id, page.bytes));
        const auto found = part_of(id).pages.find(id.raw);
        const PageBytes& replayed = found == part_of(id).pages.end() ? never_changed : *found->second;
        expect_equal(id, page, replayed);
      }
    }
  }

 private:
  // A page's changes are appended under its latch.  A mutex for all would order what no latch does.
  struct Part {
    std::mutex mutex;
    std::unordered_map<uint64_t, std::unique_ptr<PageBytes>> pages;
  };
  Part& part_of(bufmgr::PageId page) { return parts_[(page.raw ^ page.raw >> 40) % 64]; }
  Part parts_[64];
};

}  // namespace gcl_test

// pages_of_wals POOL DATA...: makes the pages of a pool out of nothing but the WALs of its primaries' data directories,
// and compares them with the pool's file as it was saved.  Prints a line of figures; ends with 1 if a page differs.
#include <fmt/format.h>

#include <cstring>
#include <map>
#include <memory>
#include <vector>

#include "coherence/inspect/pool_view.hpp"
#include "extension/engine/heap/heap_page.hpp"
#include "extension/engine/txn/txn_notes.hpp"
#include "recovery/log_merge.hpp"
#include "tools/gclctl/failure.hpp"
#include "tools/gclctl/wal.hpp"

namespace {

using bufmgr::PageId;
using coherence::kPageSize;
using gclctl::fail;
using gclctl::kKindMask, gclctl::kMiniTransaction, gclctl::kNote, gclctl::kResourceManager;

class Wal final : public recovery::LogSource {
 public:
  explicit Wal(const char* data) {
    const uint64_t end = gclctl::visit_wal(data, [&](const gclctl::WalRecord& record) {
      if (record.rmgr != kResourceManager) return;
      if ((record.info & kKindMask) == kMiniTransaction)
        records_.emplace_back(record.data.begin(), record.data.end());
      else if ((record.info & kKindMask) == kNote)
        count(record);
    });
    if (end == 0) fail("there is no log in {}", data);
  }
  coherence::Result<std::span<const std::byte>> next() override {
    if (at_ == records_.size()) return coherence::Errc::kNotFound;
    return std::span<const std::byte>(records_[at_++]);
  }
  size_t records() const { return records_.size(); }
  size_t transactions() const { return transactions_; }

 private:
  void count(const gclctl::WalRecord& record) {
    const auto note = engine::read_note(record.data, record.xid);
    if (!note) fail("a note cannot be read");
    transactions_ += note->kind == engine::TxnNote::kCommits;
  }

  std::vector<std::vector<std::byte>> records_;
  size_t at_ = 0, transactions_ = 0;
};

class Pages final : public recovery::PageImages {
 public:
  explicit Pages(coherence::PoolView& pool) : pool_(pool) {}
  coherence::Result<std::byte*> image(PageId page) override {
    if (!pool_.has(page)) return coherence::Errc::kNotFound;
    auto& image = images_[page.raw];
    if (!image) image = std::make_unique<Image>();
    return image->bytes;
  }
  size_t count() const { return images_.size(); }

  // Pages of the pool that are something else.
  int differ() {
    int count = 0;
    const Image never_changed;
    for (uint32_t m = 0; m < pool_.header().memory_nodes; ++m) {
      const coherence::MemoryNodeId node{uint8_t(m)};
      for (uint64_t number = 0; number < pool_.pages(node); ++number) {
        const auto id = PageId::at(node, number);
        const auto found = images_.find(id.raw);
        count += differs(id, found == images_.end() ? never_changed : *found->second);
      }
    }
    return count;
  }

 private:
  struct Image {
    alignas(8) std::byte bytes[kPageSize] = {};
  };
  bool differs(PageId id, const Image& made) {
    Image saved;
    if (!pool_.page(id, saved.bytes)) fail("page {}:{} cannot be read", id.node().value, id.number());
    bufmgr::PageHeader header, made_header;
    memcpy(&header, saved.bytes, sizeof header);
    memcpy(&made_header, made.bytes, sizeof made_header);
    const bool same = header.type == bufmgr::PageType::kHeap
                          ? engine::replay_differs_at(saved.bytes, made.bytes) == kPageSize
                          : memcmp(saved.bytes, made.bytes, kPageSize) == 0;
    if (!same)
      fmt::print("page {}:{} of type {} has version {}, and the WALs make version {}\n", id.node().value, id.number(),
                 int(header.type), header.version, made_header.version);
    return !same;
  }

  coherence::PoolView& pool_;
  std::map<uint64_t, std::unique_ptr<Image>> images_;
};

int run(const char* file, char** data, int count) {
  coherence::Problem problem;
  const auto pool = coherence::PoolView::open(file, &problem);
  if (!pool) fail("{}", problem.text);
  std::vector<std::unique_ptr<Wal>> wals;
  std::vector<recovery::LogSource*> sources;
  size_t records = 0, transactions = 0;
  for (int i = 0; i < count; ++i) {
    wals.push_back(std::make_unique<Wal>(data[i]));
    sources.push_back(wals.back().get());
    records += wals.back()->records();
    transactions += wals.back()->transactions();
  }
  Pages pages(**pool);
  if (!recovery::apply_logs(sources, pages, &problem)) fail("{}", problem.text);
  const int differ = pages.differ();
  fmt::print("{} pages of {} records, {} transactions: {} differ\n", pages.count(), records, transactions, differ);
  return differ == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) try {
  if (argc < 3) fail("pages_of_wals POOL DATA...");
  return run(argv[1], argv + 2, argc - 2);
} catch (const std::exception& error) {
  fmt::print(stderr, "pages_of_wals: {}\n", gclctl::text_of(error));
  return 2;
}

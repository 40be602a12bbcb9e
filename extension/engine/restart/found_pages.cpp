#include "extension/engine/restart/found_pages.hpp"

#include <algorithm>

#include "extension/engine/ddl/ddl_log_root.hpp"
#include "extension/engine/reclaim/reclaim_page.hpp"
#include "extension/engine/txn/aborted_list_page.hpp"
#include "extension/engine/txn/overflow_page.hpp"

namespace engine {

using bufmgr::PageHeader;
using bufmgr::PageType;
using coherence::Batch;
using coherence::Errc;
using coherence::Result;
using coherence::Status;

namespace {

class Scan {
 public:
  Scan(bufmgr::BufferPool& pool, bufmgr::Session& session) : pool_(pool), session_(session) {
    found_.lists.resize(pool.nodes_max());
  }
  Result<FoundPages> run() {
    for (PageId at = PageId::at({0}, 0);; at = at + 1) {
      const auto next = pool_.next_allocated(session_, at);
      if (!next) return next.error();
      if (!next->valid()) return std::move(found_);
      at = *next;
      GCL_TRY(look(at));
    }
  }

 private:
  // The header alone, from here or out of the pool: to bring each page here would take as long as to read the pool.
  Status read_header(PageId page, PageHeader* to) {
    const bufmgr::OptimisticGuard here = pool_.peek(session_, page);
    if (here) {
      *to = here.get<PageHeader>(0);
      if (here.validate()) return {};
    }
    Batch batch(page.node());
    batch.read(pool_.coherence_pool().page_address(page), to, sizeof *to);
    return session_.memory().run(batch);
  }
  Status look(PageId page) {
    PageHeader header;
    GCL_TRY(read_header(page, &header));
    if (header.type != PageType::kList && header.type != PageType::kStatus && header.type != PageType::kReclaim &&
        header.type != PageType::kLogRoot)
      return {};
    GCL_TRY(pool_.copy_page(session_, page, copy_));
    return note(page, header.type);
  }
  Status note(PageId page, PageType type) {
    if (type == PageType::kList) return note_list(page, as<AbortedListPage>());
    if (type == PageType::kStatus) return note_overflow(page, as<OverflowPage>());
    if (type == PageType::kReclaim) return note_reclaim(page, as<ReclaimPage>());
    found_.log_roots.push_back({page, reinterpret_cast<const DdlLogRoot*>(copy_ + bufmgr::kPageBody)->count});
    return {};
  }
  Status note_list(PageId page, const AbortedListPage& list) {
    if (list.owner == 0 || list.owner > found_.lists.size()) return Errc::kCorrupt;
    auto& to = found_.lists[list.owner - 1];
    to.pages.push_back(page);
    for (const uint64_t sequence : list.entry)
      if (sequence != 0) to.sequences.push_back(sequence);
    return {};
  }
  Status note_overflow(PageId page, const OverflowPage& words) {
    if (words.owner > found_.lists.size()) return Errc::kCorrupt;
    found_.overflow.push_back({page, words.owner});
    return {};
  }
  Status note_reclaim(PageId page, const ReclaimPage& list) {
    if (list.node >= found_.lists.size()) return Errc::kCorrupt;
    const auto records = std::ranges::count_if(list.record, [](const ReclaimRecord& r) { return r.word != 0; });
    found_.reclaim.push_back({page, linked_page(list.next), list.node, uint32_t(records)});
    return {};
  }
  template <class T>
  const T& as() const {
    return *reinterpret_cast<const T*>(copy_);
  }

  bufmgr::BufferPool& pool_;
  bufmgr::Session& session_;
  FoundPages found_;
  alignas(8) std::byte copy_[coherence::kPageSize];
};

}  // namespace

Result<FoundPages> find_pages(bufmgr::BufferPool& pool, bufmgr::Session& session) { return Scan(pool, session).run(); }

}  // namespace engine

#include "extension/engine/check/map_check.hpp"

#include <algorithm>

#include "extension/engine/check/page_check.hpp"
#include "extension/engine/heap/lock_page.hpp"

namespace engine {

namespace {

struct CheckedPage {
  alignas(8) std::byte bytes[coherence::kPageSize];
  template <class T>
  const T& as() const {
    return *reinterpret_cast<const T*>(bytes);
  }
};

// A link of six bytes, or of eight that are mostly zero.
PageId linked(uint64_t raw) { return raw == 0 ? PageId{} : PageId{raw}; }

}  // namespace

Status check_allocated(TxnSystem& txns, PageId page, const FindingPlace& at, Findings& findings) {
  auto next = txns.pool().next_allocated(txns.session(), page);
  if (!next) return next.error();
  if (*next != page) findings.add(at, "page is in use, but free in the pool's map of pages");
  return {};
}

Status copy_named(TxnSystem& txns, PageId page, const FindingPlace& at, std::byte* to, bool* there,
                  Findings& findings) {
  *there = page.raw >> 48 == 0 && txns.pool().coherence_pool().has(page);
  if (!*there) {
    findings.add(at, "link leads to page %llu of memory node %u, which the pool does not have",
                 static_cast<unsigned long long>(page.number()), unsigned(page.node().value));
    return {};
  }
  return txns.pool().copy_page(txns.session(), page, to);
}

Status MapCheck::check(Findings& findings) {
  pages_.clear();
  blocks_.clear();
  extents_.clear();
  CheckedPage root;
  const FindingPlace at{.page = relation_.header};
  GCL_TRY(txns_.pool().copy_page(txns_.session(), relation_.header, root.bytes));
  if (!check_header(root.bytes, PageType::kRelation, number(), at, findings)) return {};
  const auto& header = root.as<RelationPage>();
  if (header.magic != kRelationMagic) findings.add(at, "header page has magic number %#x", header.magic);
  if (header.maps > RelationPage::kMapsMax) findings.add(at, "header page names %u map pages", header.maps);
  const uint32_t maps = std::min(header.maps, RelationPage::kMapsMax);
  for (uint32_t m = 0; m < maps; ++m) {
    if (txns_.session().interrupted()) return Errc::kInterrupted;
    GCL_TRY(check_map(m, header.map[m], findings));
  }
  check_named_once(findings);
  return check_allocated(txns_, relation_.header, at, findings);
}

// heap.map-of-one-node.
Status MapCheck::check_map(uint32_t m, uint64_t entry, Findings& findings) {
  CheckedPage page;
  const PageId id = RelationPage::page_of(entry);
  const FindingPlace at{.page = id};
  bool there;
  GCL_TRY(copy_named(txns_, id, {.page = relation_.header}, page.bytes, &there, findings));
  if (!there || !check_header(page.bytes, PageType::kExtentMap, number(), at, findings)) return {};
  const auto& map = page.as<ExtentMapPage>();
  if (map.owner != RelationPage::owner_of(entry).value)
    findings.add(at, "map page is node %u's, but the header page says node %u's", map.owner,
                 unsigned(RelationPage::owner_of(entry).value));
  if (map.extents > kExtentsPerMap) findings.add(at, "map page has %u extents", map.extents);
  for (uint32_t e = 0; e < std::min(map.extents, kExtentsPerMap); ++e) {
    const MapExtent& extent = map.extent[e];
    if (extent.used > kExtentPages || (e + 1 < map.extents && extent.used != kExtentPages))
      findings.add(at, "extent %u has %u pages in use", e, unsigned(extent.used));
    GCL_TRY(e == 0 ? check_singles(m, map, findings) : check_extent(m, e, map, findings));
    extents_.push_back({id, m * kExtentsPerMap + e, extent.lock_directory()});
    for (uint32_t n = extent.used; n < kExtentPages; ++n)  // heap.room-is-hint
      if (extent.room_of(n) != 0) {
        findings.add(at, "page %u of extent %u is not in use, but has room", n, e);
        break;
      }
  }
  return check_allocated(txns_, id, at, findings);
}

Status MapCheck::check_singles(uint32_t m, const ExtentMapPage& map, Findings& findings) {
  for (uint32_t n = 0; n < std::min<uint32_t>(map.extent[0].used, kExtentPages); ++n)
    GCL_TRY(add_pages({m * kBlocksPerMap + n, map.single[n].page(), 1}, {.page = map.single[n].page()}, findings));
  return {};
}

Status MapCheck::check_extent(uint32_t m, uint32_t e, const ExtentMapPage& map, Findings& findings) {
  const MapExtent& extent = map.extent[e];
  const PageId first{extent.first};
  if (first.number() % kExtentPages != 0)
    findings.add({.page = first}, "extent %u begins at a page that no extent begins at", e);
  return add_pages({(m * kExtentsPerMap + e) * kExtentPages, first, std::min<uint32_t>(extent.used, kExtentPages)},
                   {.page = first}, findings);
}

Status MapCheck::add_pages(const Pages& pages, const FindingPlace& at, Findings& findings) {
  for (uint32_t n = 0; n < pages.count; ++n) blocks_.push_back(pages.block + n);
  pages_.push_back(pages);
  if (pages.count == 0) return {};
  auto& pool = txns_.pool().coherence_pool();
  if (pages.first.raw >> 48 != 0 || !pool.has(pages.first) || !pool.has(pages.first + (pages.count - 1))) {
    findings.add(at, "block %u is a page that the pool does not have", pages.block);
    pages_.back().count = 0;
    return {};
  }
  return check_allocated(txns_, pages.first, at, findings);
}

void MapCheck::check_named_once(Findings& findings) const {
  std::vector<Pages> sorted;
  for (const Pages& pages : pages_)
    if (pages.count != 0) sorted.push_back(pages);
  std::sort(sorted.begin(), sorted.end(), [](const Pages& a, const Pages& b) { return a.first < b.first; });
  for (size_t i = 1; i < sorted.size(); ++i) {
    const Pages& before = sorted[i - 1];
    if (sorted[i].first.raw < before.first.raw + before.count)
      findings.add({.page = sorted[i].first, .block = sorted[i].block}, "page is also block %u",
                   before.block + uint32_t(sorted[i].first.raw - before.first.raw));
  }
}

PageId MapCheck::page_of(uint32_t block) const {
  auto after =
      std::upper_bound(pages_.begin(), pages_.end(), block, [](uint32_t b, const Pages& p) { return b < p.block; });
  if (after == pages_.begin()) return {};
  const Pages& pages = *--after;
  return block - pages.block < pages.count ? pages.first + (block - pages.block) : PageId{};
}

Status MapCheck::check_locks(uint32_t i, TxnLimits& limits, Findings& findings) {
  const Extent& extent = extents_[i];
  if (!extent.locks.valid()) return {};
  CheckedPage page;
  bool there;
  GCL_TRY(copy_named(txns_, extent.locks, {.page = extent.page}, page.bytes, &there, findings));
  if (!there || !check_header(page.bytes, PageType::kLockCells, number(), {.page = extent.locks}, findings)) return {};
  for (uint32_t n = 0; n < kExtentPages; ++n) {
    const PageId first = linked(page.as<LockDirectory>().first[n]);
    // A chain that comes to where it has been: looked for at every doubling of its length.
    uint64_t length = 0, mark_at = 1;
    PageId mark{};
    for (PageId at = first; at.valid(); ++length) {
      if (at == mark) {
        findings.add({.page = at}, "lock pages are linked in a circle");
        break;
      }
      if (length == mark_at) mark = at, mark_at *= 2;
      PageId next{};
      GCL_TRY(check_lock_page(at, extent.number * kExtentPages + n, limits, &next, findings));
      at = next;
    }
  }
  return {};
}

Status MapCheck::check_lock_page(PageId id, uint32_t block, TxnLimits& limits, PageId* next, Findings& findings) {
  CheckedPage page;
  bool there;
  GCL_TRY(copy_named(txns_, id, {.page = id, .block = block}, page.bytes, &there, findings));
  const FindingPlace at{.page = id, .block = block};
  if (!there || !check_header(page.bytes, PageType::kLockCells, number(), at, findings)) return {};
  const auto& locks = page.as<LockPage>();
  *next = linked(locks.next);
  if (locks.used > LockPage::kEntries) findings.add(at, "lock page has %u entries", locks.used);
  for (uint32_t n = 0; n < LockPage::kEntries; ++n) {
    const LockEntry& entry = locks.entry[n];
    if (entry.id == 0) continue;
    auto exists = limits.may_exist(entry.locker().id);
    if (!exists) return exists.error();
    if (n >= locks.used)
      findings.add(at, "lock entry %u is taken, but the page says that there are %u", n, locks.used);
    else if (!*exists || entry.line < 1 || entry.line > kLinesMax || entry.mode > uint8_t(RowLock::kExclusive))
      findings.add(at, "lock entry %u is no lock of a row: item %u, mode %u, transaction %#llx", n,
                   unsigned(entry.line), unsigned(entry.mode), static_cast<unsigned long long>(entry.id));
  }
  return check_allocated(txns_, id, at, findings);
}

}  // namespace engine

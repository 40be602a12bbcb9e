#include "extension/engine/check/tree_check.hpp"

#include "extension/engine/blink/meta.hpp"
#include "extension/engine/blink/search.hpp"
#include "extension/engine/check/page_check.hpp"

namespace engine {

using blink::Bin;
using blink::Head;
using blink::Meta;

Result<bool> TreeCheck::begin(Findings& findings) {
  const FindingPlace at{.page = meta_};
  alignas(8) std::byte bytes[coherence::kPageSize];
  GCL_TRY(pool().copy_page(session(), meta_, bytes));
  if (!check_header(bytes, PageType::kBlinkMeta, relation(), at, findings)) return false;
  Meta meta;
  std::memcpy(&meta, bytes + bufmgr::kPageBody, sizeof meta);
  if (meta.magic != Meta::kMagic || meta.format != Meta::kFormat) {
    findings.add(at, "meta page has magic number %#llx and format %u", static_cast<unsigned long long>(meta.magic),
                 meta.format);
    return false;
  }
  if (meta.dropping != 0) findings.add(at, "index is being dropped");
  GCL_TRY(check_allocated(txns_, meta_, at, findings));
  if (meta.bin.valid()) GCL_TRY(check_bin(meta.bin, findings));
  root_ = meta.root;
  bool there;
  GCL_TRY(copy(root_, at, current_, &there, findings));
  if (!there || !current_.headed) return false;
  level_ = current_.head.special.level;
  return true;
}

// check.bin-holds-deleted.  VACUUM moves pages between the lists: what was seen counts if the bin has not changed.
Status TreeCheck::check_bin(PageId id, Findings& findings) {
  const FindingPlace at{.page = id};
  alignas(8) std::byte bytes[coherence::kPageSize];
  for (int tries = 0; tries < kTries; ++tries) {
    bool there;
    GCL_TRY(copy_named(txns_, id, {.page = meta_}, bytes, &there, findings));
    if (!there || !check_header(bytes, PageType::kBlinkMeta, relation(), at, findings)) return {};
    Bin bin;
    std::memcpy(&bin, bytes + bufmgr::kPageBody, sizeof bin);
    if (bin.magic != Bin::kMagic) {
      findings.add(at, "list of deleted pages has magic number %#llx", static_cast<unsigned long long>(bin.magic));
      return {};
    }
    Findings found;
    uint64_t pages = 0;
    bool stable = true;
    const uint64_t version = reinterpret_cast<const PageHeader*>(bytes)->version;
    for (const PageId first : {bin.fresh, bin.waiting})
      if (stable) GCL_TRY(check_bin_list(id, version, first, &pages, &stable, found));
    if (!stable) continue;
    for (int i = 0; i < found.count(); ++i) findings.add(found[i].at, "%s", found[i].text);
    if (pages != bin.pages && !found.any())
      findings.add(at, "lists have %llu deleted pages, but say %llu", static_cast<unsigned long long>(pages),
                   static_cast<unsigned long long>(bin.pages));
    return {};
  }
  ++counts_.not_compared;
  return {};
}

Status TreeCheck::check_bin_list(PageId bin, uint64_t version, PageId first, uint64_t* pages, bool* stable,
                                 Findings& findings) {
  blink::PageReader reader;
  PageId before = bin;
  for (PageId page = first; page.valid(); ++*pages) {
    if (session().interrupted()) return Errc::kInterrupted;
    if (*pages > pool().pages()) {
      findings.add({.page = page}, "deleted pages are linked in a circle");
      return {};
    }
    if (page.raw >> 48 != 0 || !pool().coherence_pool().has(page)) {
      findings.add({.page = before}, "list of deleted pages leads to a page that the pool does not have");
      return {};
    }
    Head head{};
    const Status read = blink::read_whole_head(pool(), session(), page, reader, head);
    if (!read && read.error() != Errc::kCorrupt) return read;
    auto now = version_of(bin);
    if (!now) return now.error();
    *stable = *now == version;
    if (!*stable) return {};
    if (!read || !head.deleted()) {
      findings.add({.page = page}, "page is in the list of deleted pages, but not deleted");
      return {};
    }
    before = page;
    page = PageId{head.special.gate};
  }
  return {};
}

// The first page of level_: down the first children from the root, and left over pages that no downlink leads to.
Result<bool> TreeCheck::find_first(Findings& findings) {
  PageId page = root_;
  FindingPlace from{.page = meta_};
  const auto pass_on = [&](const Findings& told) {
    for (int i = 0; i < told.count(); ++i) findings.add(told[i].at, "%s", told[i].text);
  };
  for (uint64_t steps = 0; steps <= pool().pages(); ++steps) {
    if (session().interrupted()) return Errc::kInterrupted;
    Findings told;  // pages of other levels are told of when their levels are gone through
    bool there;
    GCL_TRY(copy(page, from, current_, &there, told));
    const Head& head = current_.head;
    const bool arrived = there && current_.headed && head.special.level == level_ && !head.deleted();
    if (!there || !current_.headed || (arrived && !head.special.left.valid())) pass_on(told);
    if (!there || !current_.headed || head.special.level < level_) break;
    from = current_.at();
    if (arrived && !head.special.left.valid()) return true;
    if (arrived)
      page = head.special.left;
    else if (head.gone())
      page = head.special.right;  // since its number was read
    else if (!blink::read_child(blink::Source::plain(current_.bytes), head, 0, page))
      break;
  }
  findings.add(from, "level %d of the index has no first page", level_);
  return false;
}

Result<bool> TreeCheck::next(Findings& findings) {
  while (!moved_) {
    if (level_ < 0) return false;
    auto moved = on_level_ ? move_right(findings) : find_first(findings);
    if (!moved) return moved.error();
    if (!on_level_) steps_ = 0, mark_ = {}, mark_at_ = 1;
    moved_ = on_level_ = *moved;
    if (!*moved) --level_;
  }
  GCL_TRY(check_current(findings));
  moved_ = false;
  return true;
}

// (check.levels-end) a page that comes twice closes a circle.  Looked for at every doubling of the way.
Result<bool> TreeCheck::move_right(Findings& findings) {
  if (!current_.headed || !current_.head.special.has_right()) return false;
  bool there = false;
  auto stable = copy_right(findings, &there);
  if (stable && !*stable && there) stable = latch_right(findings, &there);
  if (!stable) return stable.error();
  if (!there) return false;
  if (*stable)
    check_siblings(findings);
  else
    ++counts_.not_compared;
  if (right_.id == mark_) {
    findings.add(right_.at(), "pages of level %d are linked in a circle", level_);
    return false;
  }
  if (++steps_ == mark_at_) {
    mark_ = right_.id;
    mark_at_ *= 2;
  }
  current_ = right_;
  return true;
}

Status TreeCheck::check_current(Findings& findings) {
  const Head& head = current_.head;
  ++counts_.pages;
  if (!current_.headed) return {};
  if (head.special.level != level_) {
    findings.add(current_.at(), "page is of level %u, among those of level %d", unsigned(head.special.level), level_);
    return {};
  }
  GCL_TRY(check_allocated(txns_, current_.id, current_.at(), findings));
  if (head.gone()) {
    counts_.half_dead += !head.deleted();
    return {};
  }
  counts_.incomplete += head.incomplete();
  if (current_.id == root_ && (head.special.has_right() || head.special.left.valid()))
    findings.add(current_.at(), "root has a sibling");
  if (!current_.sound) return {};
  if (!head.leaf()) return check_children(findings);
  counts_.entries += head.count;
  return rows_ != nullptr ? check_rows(findings) : Status{};
}

Status TreeCheck::check_rows(Findings& findings) {
  for (uint32_t i = 0; i < current_.head.count; ++i)
    GCL_TRY(rows_->check_entry(blink::load_tid(current_.key(i).data()), current_.at(i), findings));
  return {};
}

}  // namespace engine

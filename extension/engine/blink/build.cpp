#include "extension/engine/blink/build.hpp"

#include <type_traits>

#include "extension/engine/blink/taken.hpp"

namespace engine::blink {
namespace {

static_assert(std::is_trivially_destructible_v<Builder>);  // blink.compare-private-memory

constexpr uint32_t kSinglePages = 8;  // a small tree takes these one by one

std::span<const std::byte> key_of(int level, std::span<const std::byte> entry) {
  return level == 0 ? entry : entry.subspan(kChildBytes);
}

}  // namespace

Status Builder::add(std::span<const std::byte> key, Tid tid) {
  if (key.size() > kKeyMax) return Errc::kTooLarge;
  VERIFY(key.size() >= kKeyMin && tid.valid() && finished_ == 0);
  if (levels_ == 0) {
    level_[0].image.begin(0);
    levels_ = 1;
  }
  const EntryImage entry = EntryImage::leaf(key, tid);
  if (const Status s = append(0, entry); !s) return s;
  ++entries_;
  return {};
}

// All or nothing, so that it can be called again: a downlink that is still missing is remembered, and added first.
Status Builder::append(int level, const EntryImage& entry) {
  if (const Status s = append_to_parent(level); !s) return s;
  Level& l = level_[level];
  const uint32_t fill = kNodeSpace * (level == 0 ? ground_.fill : kFillInner) / 100;
  const bool full = l.image.used() + space_of(entry.bytes) > fill;
  if (full && l.image.count() >= 2) {  // two and a high key always fit
    if (const Status s = close_page(level, entry); !s) return s;
    if (const Status s = append_to_parent(level); !s) return s;
  }
  l.image.append_raw({entry.image, entry.bytes});
  return {};
}

// Writes the page before `entry` and begins the next, with the page's last entry if its high key needs the space.
Status Builder::close_page(int level, const EntryImage& entry) {
  Level& l = level_[level];
  if (!l.next.valid()) {
    auto page = take_page();
    if (!page) return page.error();
    l.next = *page;
  }
  if (!l.first.valid()) {
    auto page = take_page();
    if (!page) return page.error();
    l.first = l.id = *page;
  }
  EntryImage carried;
  const std::span<const std::byte> next{entry.image, entry.bytes};
  const bool carry = l.image.used() + align8(entry.bytes) > kNodeSpace;
  if (carry) {
    VERIFY(l.image.count() >= 2);
    carried.bytes = uint32_t(l.image.last().size());
    std::memcpy(carried.image, l.image.last().data(), carried.bytes);
    l.image.drop_last();
  }
  Key separator;
  separate(level, key_of(level, l.image.last()),
           key_of(level, carry ? std::span<const std::byte>{carried.image, carried.bytes} : next), separator);
  l.image.set_high(separator.span());
  l.image.special().left = l.left;
  l.image.special().right = l.next;
  if (const Status s = write_page(l.id, l.image); !s) {
    l.image.drop_high();
    if (carry) l.image.append_raw({carried.image, carried.bytes});
    return s;
  }
  l.left = l.id;
  l.id = std::exchange(l.next, {});
  l.low.set(separator.span());
  l.owed = true;
  l.image.begin(uint16_t(level));
  if (carry) l.image.append_raw({carried.image, carried.bytes});
  return {};
}

void Builder::separate(int level, std::span<const std::byte> left, std::span<const std::byte> right, Key& separator) {
  const uint32_t bytes = level == 0 ? compare_->shorten(left, right, separator.image) : 0;
  if (bytes >= kKeyMin && level_[level].image.used() + align8(bytes) <= kNodeSpace) {
    VERIFY(bytes <= kKeyMax);
    separator.bytes = bytes;
    make_pivot(separator.image);  // blink.pivot-tid-minus-infinity
  } else {
    separator.set(right);
  }
}

Status Builder::append_to_parent(int level) {
  Level& l = level_[level];
  if (!l.owed) return {};
  if (level + 1 == kLevels) return Errc::kTooLarge;
  if (levels_ == level + 1) {
    level_[level + 1].image.begin(uint16_t(level + 1));
    level_[level + 1].image.append(l.first, {});  // blink.first-key-minus-infinity
    ++levels_;
  }
  if (const Status s = append(level + 1, EntryImage::pivot(l.id, l.low.span())); !s) return s;
  l.owed = false;
  return {};
}

Status Builder::finish() {
  // Each level's last page, up to the level that needed one page only: that one is the root.
  for (; levels_ > 0 && !loaded_; ++finished_) {
    if (const Status s = append_to_parent(finished_); !s) return s;
    Level& l = level_[finished_];
    l.image.special().left = l.left;
    if (l.id.valid()) {
      GCL_TRY(write_page(l.id, l.image));
      continue;
    }
    GCL_TRY(trim());
    GCL_TRY(write_root(l.image));
    loaded_ = true;
  }
  for (Meta meta; list_.valid(); list_ = meta.taken) {
    meta.taken = list_;
    GCL_TRY(drop_list(*ground_.pool, *ground_.session, ground_.meta, meta, false));
  }
  return {};
}

// From now on the tree leads to what was taken.
Status Builder::write_root(PageImage& image) {
  if (!list_.valid()) return write_page(ground_.root, image);
  bufmgr::MiniTransaction change(*ground_.pool, *ground_.session);
  GCL_TRY(change.reserve(log_space(1) + 64));
  auto root = ground_.pool->fix_exclusive(*ground_.session, ground_.root);
  if (!root) return root.error();
  ground_.session->next_wait(bufmgr::WaitOrder::kUp);
  auto meta = ground_.pool->fix_exclusive(*ground_.session, ground_.meta);
  if (!meta) return meta.error();
  change.join(*root);
  change.join(*meta);
  image.write_to(change, *root, ground_.relation(), true);
  change.set(*meta, kPageBody + offsetof(Meta, loaded), uint64_t{1});
  change.commit();
  return {};
}

Status Builder::write_page(PageId id, PageImage& image) {
  bufmgr::MiniTransaction change(*ground_.pool, *ground_.session);
  GCL_TRY(change.reserve(log_space(1)));
  auto page = ground_.pool->fix_exclusive(*ground_.session, id);
  if (!page) return page.error();
  change.join(*page);
  image.write_to(change, *page, ground_.relation(), true);
  change.commit();
  return {};
}

Result<PageId> Builder::take_page() {
  if (pages_taken_ >= kSinglePages && (!extent_.valid() || extent_used_ == kExtentPages)) {
    auto extent = take(kExtentPages);
    if (!extent && extent.error() != Errc::kNoSpace) return extent.error();
    extent_ = extent ? *extent : PageId{};
    extent_used_ = 0;
    extent_pages_ = kExtentPages;
  }
  if (!extent_.valid()) {
    auto page = take(1);
    if (page) ++pages_taken_;
    return page;
  }
  ++pages_taken_;
  return extent_ + extent_used_++;
}

Result<PageId> Builder::take(uint32_t count) {
  if (!list_.valid() || listed_ == Taken::kEntries) {
    auto list = add_list(ground_, list_);
    if (!list) return list;
    list_ = *list;
    listed_ = 0;
  }
  auto first = take_pages(ground_, list_, listed_, count);
  if (first) ++listed_;
  return first;
}

// Gives back what is left of the last extent, which is the last entry.
Status Builder::trim() {
  for (; extent_.valid() && extent_pages_ > extent_used_; --extent_pages_)
    GCL_TRY(give_back(ground_, list_, listed_ - 1, {extent_, extent_pages_}));
  return {};
}

}  // namespace engine::blink

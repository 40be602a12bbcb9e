// Node: the layout of a B-link page, and the ways to read one.
//
//   0     PageHeader   lower: end of the links; upper: start of the entries; special: kSpecialAt
//   40    links        {offset, bytes} per entry, in key order
//         free space
//         entries      8-byte aligned; leaf: key (tid in its first six bytes); inner: child page (8 bytes), key
//         high key     if right is a page: a key; everything on this page sorts before it
//   8152  Special
//
// blink.page-covers-range: Every page covers [low, high): low is the high key of its left sibling, and falls only when
//     that sibling leaves the tree; high only shrinks.
// blink.first-key-minus-infinity: Entry 0 of an inner page counts as minus infinity; its key is never read (and
//     may be empty).
// blink.pivot-tid-minus-infinity: A pivot with a tid of offset 0 has minus infinity for its tid.
// blink.deleted-covers-nothing: A page that is half-dead or deleted covers nothing: its range is its right sibling's,
//     and there always is one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "bufmgr/base/page.hpp"
#include "bufmgr/guards.hpp"
#include "extension/engine/blink/entry.hpp"

namespace engine::blink {

using bufmgr::kPageBody;
using bufmgr::PageHeader;
using bufmgr::PageType;
using coherence::kPageSize;
using coherence::PageId;

struct Special {
  PageId left;
  PageId right;
  uint16_t level;  // 0: leaf
  uint16_t flags;
  uint16_t high_at;  // offset of the high key; meaningful if right is a page
  uint16_t high_bytes;
  uint16_t garbage;      // bytes between upper and special that no link or high key uses
  uint16_t whole_upper;  // upper when the page was last written whole: what lies below it came later
  uint16_t reserved[2];
  uint64_t gate;  // counts unique inserts that this leaf admitted and another took (README, "Unique");
                  // half-dead: the page above it that leaves with it; deleted: the next on its list; ~0: none
  bool has_right() const { return right.valid(); }
};
inline constexpr uint16_t kIncompleteSplit = 1;  // the right sibling has no downlink yet
inline constexpr uint16_t kHalfDead = 2;         // no downlink leads here any more; its siblings still do
inline constexpr uint16_t kDeleted = 4;          // nothing leads here but what was read before; half-dead, too

struct Link {
  uint16_t offset = 0;
  uint16_t bytes = 0;
};

inline constexpr uint32_t kSpecialAt = kPageSize - sizeof(Special);
inline constexpr uint32_t kChildBytes = 8;
constexpr uint32_t align8(uint32_t n) { return (n + 7) & ~7u; }
// Page space an entry or high key takes.
constexpr uint32_t space_of(uint32_t bytes) { return align8(bytes) + sizeof(Link); }
inline constexpr uint32_t kNodeSpace = kSpecialAt - kPageBody;
inline constexpr uint32_t kPerPageMax = kNodeSpace / (kKeyMin + sizeof(Link));
static_assert(3 * space_of(kChildBytes + kKeyMax) <= kNodeSpace);

// Bytes of a page: in private memory, under a guard, or seen optimistically (then nothing counts before validate()).
// Plain data.
class Source {
 public:
  static Source plain(const std::byte* page) {
    Source s;
    s.plain_ = page;
    return s;
  }
  static Source optimistic(const bufmgr::OptimisticGuard& guard) {
    Source s;
    s.guard_ = guard;
    return s;
  }
  void copy(uint32_t offset, void* to, uint32_t bytes) const noexcept {
    if (plain_ != nullptr)
      std::memcpy(to, plain_ + offset, bytes);
    else
      guard_.copy(offset, to, bytes);
  }
  // REQUIRES: offset is a multiple of 8 and below kPageSize.
  uint64_t word(uint32_t offset) const noexcept {
    return plain_ != nullptr ? bufmgr::load_page_word(plain_ + offset) : guard_.word(offset);
  }
  // For load_page_word() only.
  const std::byte* bytes() const noexcept { return plain_ != nullptr ? plain_ : guard_.bytes(); }
  bool validate() const noexcept { return plain_ != nullptr || guard_.validate(); }
  template <class T>
  T get(uint32_t offset) const noexcept {
    T value;
    copy(offset, &value, sizeof value);
    return value;
  }

 private:
  const std::byte* plain_ = nullptr;
  bufmgr::OptimisticGuard guard_;
};

// A page's fixed parts, copied out.
struct Head {
  uint64_t version;
  PageType type;
  uint16_t lower, upper;
  uint16_t count;
  Special special;
  bool leaf() const { return special.level == 0; }
  bool incomplete() const { return (special.flags & kIncompleteSplit) != 0; }
  bool gone() const { return (special.flags & kHalfDead) != 0; }  // half-dead or deleted
  bool deleted() const { return (special.flags & kDeleted) != 0; }
  uint32_t entry_skip() const { return leaf() ? 0 : kChildBytes; }  // bytes of an entry before its key
  uint32_t free_bytes() const { return upper - lower; }
};

// False: not a node, or torn; validate() tells which.
bool read_head(const Source& page, Head& head) noexcept;
// Whether these bytes lie where entries and the high key do.
inline bool in_entries(const Head& head, uint32_t offset, uint32_t bytes, uint32_t bytes_max) {
  return offset % 8 == 0 && offset >= head.lower && offset < kSpecialAt && bytes <= bytes_max &&
         offset + bytes <= kSpecialAt;
}

// Link of entry `i`, unchecked.  REQUIRES: i < kPerPageMax.
inline Link load_link(const std::byte* page, uint32_t i) noexcept {
  static_assert(kPageBody % 8 == 0 && sizeof(Link) == 4);
  const auto half = uint32_t(bufmgr::load_page_word(page + kPageBody + i / 2 * 8) >> i % 2 * 32);
  return {uint16_t(half), uint16_t(half >> 16)};
}

// The same, checked against the page's bounds.  REQUIRES: i < head.count.
inline bool read_link(const Source& page, const Head& head, uint32_t i, Link& link) noexcept {
  link = load_link(page.bytes(), i);
  return link.bytes >= head.entry_skip() && in_entries(head, link.offset, link.bytes, kChildBytes + kKeyMax);
}

// A key copied out of a page.
struct Key {
  uint32_t bytes = 0;
  alignas(8) std::byte image[kKeyMax];
  std::span<const std::byte> span() const { return {image, bytes}; }
  void set(std::span<const std::byte> from) {
    bytes = uint32_t(from.size());
    std::memcpy(image, from.data(), from.size());
  }
};
bool read_key(const Source& page, const Head& head, uint32_t i, Key& key) noexcept;
bool read_high(const Source& page, const Head& head, Key& key) noexcept;
bool read_child(const Source& page, const Head& head, uint32_t i, PageId& child) noexcept;
// The first bytes of a key.  False: it is shorter, or the page is torn.
inline bool read_key_head(const Source& page, const Head& head, uint32_t i, KeyHead& key) noexcept {
  Link link;
  const uint32_t skip = head.entry_skip();
  if (!read_link(page, head, i, link) || link.bytes < skip + sizeof key) return false;
  key = {page.word(link.offset + skip), page.word(link.offset + skip + 8)};
  return true;
}

inline bool read_high_head(const Source& page, const Head& head, KeyHead& key) noexcept {
  const uint32_t at = head.special.high_at;
  if (head.special.high_bytes < sizeof key || !in_entries(head, at, head.special.high_bytes, kKeyMax)) return false;
  key = {page.word(at), page.word(at + 8)};
  return true;
}

// Entries of a page in private memory or under a guard, without copying.  REQUIRES: the page is sound.
std::span<const std::byte> key_at(const std::byte* page, const Head& head, uint32_t i) noexcept;
PageId child_at(const std::byte* page, const Head& head, uint32_t i) noexcept;
std::span<const std::byte> high_of(const std::byte* page, const Head& head) noexcept;

}  // namespace engine::blink

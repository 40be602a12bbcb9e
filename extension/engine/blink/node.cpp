#include "extension/engine/blink/node.hpp"

namespace engine::blink {
namespace {

// The header's words from `relation` on: whole aligned words are what copies fastest.
struct Fixed {
  uint32_t relation;
  PageType type;
  uint8_t lsn_node;
  uint16_t flags, lower, upper, special, reserved;
};
constexpr uint32_t kFixedAt = offsetof(PageHeader, relation);
static_assert(kFixedAt % 8 == 0 && sizeof(Fixed) == 16);
static_assert(offsetof(PageHeader, lower) == kFixedAt + offsetof(Fixed, lower));

}  // namespace

bool read_head(const Source& page, Head& head) noexcept {
  head.version = page.get<uint64_t>(offsetof(PageHeader, version));
  const auto fixed = page.get<Fixed>(kFixedAt);
  page.copy(kSpecialAt, &head.special, sizeof head.special);
  head.type = fixed.type;
  head.lower = fixed.lower;
  head.upper = fixed.upper;
  head.count = uint16_t((fixed.lower - kPageBody) / sizeof(Link));
  const PageType expected = head.leaf() ? PageType::kBlinkLeaf : PageType::kBlinkInner;
  return head.type == expected && head.lower >= kPageBody && (head.lower - kPageBody) % sizeof(Link) == 0 &&
         head.lower <= head.upper && head.upper <= kSpecialAt && (head.leaf() || head.count > 0);
}

bool read_key(const Source& page, const Head& head, uint32_t i, Key& key) noexcept {
  Link link;
  if (!read_link(page, head, i, link)) return false;
  key.bytes = link.bytes - head.entry_skip();
  if (key.bytes < kKeyMin || key.bytes > kKeyMax) return false;
  page.copy(link.offset + head.entry_skip(), key.image, key.bytes);
  return true;
}

bool read_high(const Source& page, const Head& head, Key& key) noexcept {
  key.bytes = head.special.high_bytes;
  if (key.bytes < kKeyMin || !in_entries(head, head.special.high_at, key.bytes, kKeyMax)) return false;
  page.copy(head.special.high_at, key.image, key.bytes);
  return true;
}

bool read_child(const Source& page, const Head& head, uint32_t i, PageId& child) noexcept {
  Link link;
  if (!read_link(page, head, i, link)) return false;
  child = page.get<PageId>(link.offset);
  return child.valid();
}

std::span<const std::byte> key_at(const std::byte* page, const Head& head, uint32_t i) noexcept {
  Link link;
  VERIFY(i < head.count && read_link(Source::plain(page), head, i, link));
  return {page + link.offset + head.entry_skip(), link.bytes - head.entry_skip()};
}

PageId child_at(const std::byte* page, const Head& head, uint32_t i) noexcept {
  PageId child;
  VERIFY(i < head.count && read_child(Source::plain(page), head, i, child));
  return child;
}

std::span<const std::byte> high_of(const std::byte* page, const Head& head) noexcept {
  if (!head.special.has_right()) return {};
  VERIFY(in_entries(head, head.special.high_at, head.special.high_bytes, kKeyMax));
  return {page + head.special.high_at, head.special.high_bytes};
}

}  // namespace engine::blink

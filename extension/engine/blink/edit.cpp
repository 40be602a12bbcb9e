#include "extension/engine/blink/edit.hpp"

#include "extension/engine/blink/image.hpp"

namespace engine::blink {

using bufmgr::ExclusiveGuard;
using bufmgr::MiniTransaction;

Head head_of(const ExclusiveGuard& page) {
  Head head;
  VERIFY(read_head(Source::plain(page.bytes()), head));
  return head;
}

EntryImage EntryImage::leaf(std::span<const std::byte> key, Tid tid) {
  EntryImage entry;
  entry.bytes = uint32_t(key.size());
  std::memcpy(entry.image, key.data(), key.size());
  store_tid(entry.image, tid);
  return entry;
}

EntryImage EntryImage::pivot(PageId child, std::span<const std::byte> key) {
  EntryImage entry;
  entry.bytes = kChildBytes + uint32_t(key.size());
  std::memcpy(entry.image, &child, kChildBytes);
  if (!key.empty()) std::memcpy(entry.image + kChildBytes, key.data(), key.size());
  return entry;
}

namespace {

std::span<const std::byte> raw_at(const std::byte* page, const Head& head, uint32_t i) {
  Link link;
  VERIFY(read_link(Source::plain(page), head, i, link));
  return {page + link.offset, link.bytes};
}

void rewrite_with(MiniTransaction& change, ExclusiveGuard& page, const Head& head, uint32_t index,
                  const EntryImage& entry) {
  PageImage whole;
  whole.begin(head);
  for (uint32_t i = 0; i <= head.count; ++i) {
    if (i == index) whole.append_raw({entry.image, entry.bytes});
    if (i < head.count) whole.append_raw(raw_at(page.bytes(), head, i));
  }
  if (head.special.has_right()) whole.set_high(high_of(page.bytes(), head));
  whole.write_to(change, page, 0, false);
}

}  // namespace

void put_entry(MiniTransaction& change, ExclusiveGuard& page, const Head& head, uint32_t index,
               const EntryImage& entry) {
  VERIFY(index <= head.count && has_room(head, entry.bytes));
  if (head.free_bytes() < space_of(entry.bytes)) return rewrite_with(change, page, head, index, entry);
  const uint16_t at = uint16_t(head.upper - align8(entry.bytes));
  const uint32_t link_at = kPageBody + index * sizeof(Link);
  change.write(page, at, entry.image, entry.bytes);
  if (index < head.count) change.move(page, link_at + sizeof(Link), link_at, head.lower - link_at);
  change.set(page, link_at, Link{at, uint16_t(entry.bytes)});
  const uint16_t ends[2] = {uint16_t(head.lower + sizeof(Link)), at};
  change.update(page, offsetof(PageHeader, lower), ends, sizeof ends);
}

}  // namespace engine::blink

#include "extension/engine/blink/image.hpp"

namespace engine::blink {

using bufmgr::ExclusiveGuard;
using bufmgr::MiniTransaction;

void PageImage::begin(uint16_t level) {
  lower_ = kPageBody;
  upper_ = kSpecialAt;
  special_ = {};
  special_.level = level;
}

void PageImage::begin(const Head& like) {
  begin(like.special.level);
  special_ = like.special;
  special_.high_at = special_.high_bytes = special_.garbage = 0;
}

std::byte* PageImage::place(uint32_t bytes) {
  const uint32_t padded = align8(bytes);
  VERIFY(lower_ + padded <= upper_);
  upper_ = uint16_t(upper_ - padded);
  if (padded != bytes) std::memset(bytes_ + upper_ + padded - 8, 0, 8);
  return bytes_ + upper_;
}

void PageImage::append_raw(std::span<const std::byte> entry) {
  std::memcpy(place(uint32_t(entry.size())), entry.data(), entry.size());
  const Link link{upper_, uint16_t(entry.size())};
  VERIFY(lower_ + sizeof link <= upper_);
  std::memcpy(bytes_ + lower_, &link, sizeof link);
  lower_ = uint16_t(lower_ + sizeof link);
}

void PageImage::append(std::span<const std::byte> key) { append_raw(key); }

void PageImage::append(PageId child, std::span<const std::byte> key) {
  const uint32_t bytes = kChildBytes + uint32_t(key.size());
  std::byte* to = place(bytes);
  std::memcpy(to, &child, kChildBytes);
  if (!key.empty()) std::memcpy(to + kChildBytes, key.data(), key.size());
  const Link link{upper_, uint16_t(bytes)};
  VERIFY(lower_ + sizeof link <= upper_);
  std::memcpy(bytes_ + lower_, &link, sizeof link);
  lower_ = uint16_t(lower_ + sizeof link);
}

void PageImage::set_high(std::span<const std::byte> key) {
  std::memcpy(place(uint32_t(key.size())), key.data(), key.size());
  special_.high_at = upper_;
  special_.high_bytes = uint16_t(key.size());
}

std::span<const std::byte> PageImage::last() const {
  VERIFY(count() > 0);
  Link link;
  std::memcpy(&link, bytes_ + lower_ - sizeof link, sizeof link);
  return {bytes_ + link.offset, link.bytes};
}

void PageImage::drop_last() {
  upper_ = uint16_t(upper_ + align8(uint32_t(last().size())));
  lower_ = uint16_t(lower_ - sizeof(Link));
}

void PageImage::drop_high() {
  upper_ = uint16_t(upper_ + align8(special_.high_bytes));
  special_.high_at = special_.high_bytes = 0;
}

void PageImage::write_to(MiniTransaction& change, ExclusiveGuard& page, uint32_t relation, bool fresh) {
  if (fresh) {
    const PageType type = special_.level == 0 ? PageType::kBlinkLeaf : PageType::kBlinkInner;
    change.format(page, type, relation, sizeof(Special));
  }
  const uint16_t ends[2] = {lower_, upper_};
  special_.whole_upper = upper_;
  change.write(page, offsetof(PageHeader, lower), ends, sizeof ends);
  if (lower_ > kPageBody) change.write(page, kPageBody, bytes_ + kPageBody, lower_ - kPageBody);
  if (upper_ < kSpecialAt) change.write(page, upper_, bytes_ + upper_, kSpecialAt - upper_);
  change.set(page, kSpecialAt, special_);
}

}  // namespace engine::blink

// PageImage: a whole B-link page put together in private memory, then written to a page in one mini-transaction.
#pragma once

#include "bufmgr/mini_transaction.hpp"
#include "extension/engine/blink/node.hpp"

namespace engine::blink {

class PageImage {
 public:
  void begin(uint16_t level);
  void begin(const Head& like);  // level, flags, links and gate of another page; no entries, no high key
  uint32_t used() const noexcept { return lower_ - kPageBody + (kSpecialAt - upper_); }
  uint16_t count() const noexcept { return uint16_t((lower_ - kPageBody) / sizeof(Link)); }
  // REQUIRES: it fits.
  void append(std::span<const std::byte> key);                // to a leaf
  void append(PageId child, std::span<const std::byte> key);  // to an inner page
  void append_raw(std::span<const std::byte> entry);          // child included
  void set_high(std::span<const std::byte> key);
  std::span<const std::byte> last() const;  // the entry appended last
  void drop_last();                         // REQUIRES: no high key
  void drop_high();                         // REQUIRES: set_high() came last
  Special& special() { return special_; }

  // Writes everything.  `fresh`: the page gets its type and relation too.  REQUIRES: joined.
  void write_to(bufmgr::MiniTransaction& change, bufmgr::ExclusiveGuard& page, uint32_t relation, bool fresh);

 private:
  std::byte* place(uint32_t bytes);
  uint16_t lower_, upper_;
  Special special_;
  alignas(8) std::byte bytes_[kPageSize];
};

// Log space that writing `pages` whole pages takes.
constexpr uint32_t log_space(uint32_t pages) { return pages * (kPageSize + 64); }

}  // namespace engine::blink

// Where a full page is split (rules.md, "Where a page is split").
#pragma once

#include "extension/engine/blink/node.hpp"

namespace engine::blink {

// How entries came to the places around an insert position, as the page itself shows it: what was put in since the page
// was last written whole lies below Special::whole_upper, the latest lowest.
enum class Run : uint8_t {
  kNone,
  kAscending,   // those before it came one behind the other: the next will come behind the new one
  kDescending,  // those behind it, likewise
};
Run run_at(const std::byte* page, const Head& head, uint32_t index) noexcept;

// The first entry of the right page, where an entry is wanted before entry `index`.  `fill`: percent of a leaf that is
// to be full where the next entries go to the other.  `compare` may be null for inner pages; it runs user code
// (blink.compare-private-memory).  REQUIRES: a sound page in private memory, with two entries at least.  ENSURES: 0 <
// result < head.count.
uint32_t choose_split(const std::byte* page, const Head& head, uint32_t index, uint32_t fill, Comparator* compare);

}  // namespace engine::blink

// Dead entries leave before VACUUM comes (README, "Dead entries"): leaves lose entries that lead to nothing any more.
#pragma once

#include <span>

#include "extension/engine/blink/edit.hpp"
#include "extension/engine/blink/tree.hpp"

namespace engine::blink {

// Entries of one leaf that are dead to all, as found while no guard was held.  Plain data.
struct DeadEntries {
  PageId leaf;
  uint32_t count = 0;
  Tid tid[kPerPageMax];
  void begin(PageId page) { leaf = page, count = 0; }
  void add(Tid dead) { tid[count++] = dead; }  // REQUIRES: a tid of the leaf as it was at one moment
};

// Fewer are not worth an exclusive latch of their own, and the log.
inline constexpr uint32_t kEraseMin = 8;

struct Erased {
  uint32_t gone = 0, kept = 0;
  PageId right;  // the page may have been split since it was read: its sibling then is the one to read next
};

// Takes the entries with one of these tids (ascending) out of a leaf under guard; joins it if there are any.  The room
// they took becomes garbage of the page: what is logged are links.
Erased take_out(bufmgr::MiniTransaction& change, bufmgr::ExclusiveGuard& page, const Head& head,
                std::span<const Tid> dead);

// The same for a leaf that is latched for it.  kRestart: it was the root, and has grown.  Sorts `dead`.
Result<Erased> erase(const Ground& ground, DeadEntries& dead);

}  // namespace engine::blink

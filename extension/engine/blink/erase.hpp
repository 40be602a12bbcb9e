// Dead entries leave before VACUUM comes (README, "Dead entries"): leaves lose entries that lead to nothing any more.
#pragma once

#include <span>

#include "extension/engine/blink/edit.hpp"
#include "extension/engine/blink/tree.hpp"

namespace engine::blink {

// Entries of one leaf that are dead to all, as found while no guard was held.  Plain data.
struct DeadEntries {
  PageId leaf;
  uint64_t version = 0;  // of the leaf when it was read
  uint32_t count = 0;
  union {  // not filled before it is used: most have none
    Tid tid[kPerPageMax];
  };
  DeadEntries() noexcept {}
  void begin(PageId page, uint64_t seen) { leaf = page, version = seen, count = 0; }
  void add(Tid dead) {
    if (count < kPerPageMax) tid[count++] = dead;  // a scan to and fro may say one twice
  }
};

// Fewer are not worth an exclusive latch of their own, and the log.
inline constexpr uint32_t kEraseMin = 8;
// Nor are fewer worth taking the leaf away from other primaries that read it (blink.scans-erase-rarely).
inline constexpr uint32_t kEraseShared = 64;

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

// A scan's: only if the leaf is this node's and no session works on it; or many are dead in a leaf that is still as it
// was read (blink.scans-erase-rarely).  Returns how many went.
Result<uint32_t> erase_if_cheap(const Ground& ground, DeadEntries& dead);

// Before a full leaf is split: erases its dead entries, if a sample shows that they are many.  Does nothing if the page
// changed since `version`.  `cleared`: some went.
Status clear_leaf(const Ground& ground, PageId page, uint64_t version, DeadJudge& rows, bool& cleared);

}  // namespace engine::blink

// OpenLevels: which savepoints of this node could still be rolled back alone, at the moment it was made.
//
// REQUIRES: the caller has read the savepoint's SUB word before.  A session sets `unlisted` before it writes such a
// word and lists the level before it clears `unlisted`, so an open level is listed, or its session is `unlisted`.
#pragma once

#include <algorithm>
#include <vector>

#include "coherence/base/ids.hpp"
#include "extension/engine/txn/txn_id.hpp"
#include "extension/engine/txn/txn_shared.hpp"

namespace engine {

class OpenLevels {
 public:
  explicit OpenLevels(TxnShared& shared) {
    for (uint32_t i = 0; i < shared.sessions; ++i) {
      TxnSessionSlot& slot = shared.slot(i);
      if (slot.top.load(std::memory_order_acquire) == 0) continue;  // set before its savepoints' words
      // Before the levels: pairs with the release in list_level().
      if (slot.unlisted.load(std::memory_order_acquire) != 0) unlisted_.push_back(i);
      for (OpenLevel& level : slot.open)
        if (const uint64_t id = level.id.load(std::memory_order_acquire)) ids_.push_back(id);
    }
    std::sort(ids_.begin(), ids_.end());
  }
  bool has(TxnId id) const { return std::binary_search(ids_.begin(), ids_.end(), id.raw); }
  bool unlisted() const { return !unlisted_.empty(); }
  bool unlisted(coherence::SessionId session) const {
    return std::find(unlisted_.begin(), unlisted_.end(), session.value) != unlisted_.end();
  }

 private:
  std::vector<uint64_t> ids_;
  std::vector<uint32_t> unlisted_;
};

}  // namespace engine

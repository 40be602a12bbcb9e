// Merge: the changes of one page that several rings have, applied in the order of their versions.
#pragma once

#include "coherence/base/ids.hpp"
#include "recovery/apply.hpp"
#include "recovery/ring_index.hpp"

namespace recovery {

class Merge {
 public:
  // Of one ring, all of the same page.  At most kNodesMax rings.
  void add(const RingIndex& index, std::span<const RingIndex::Change> changes) noexcept {
    if (!changes.empty()) ring_[rings_++] = {&index, changes};
  }
  // Whether that changed the image.  Errors as apply().
  coherence::Result<bool> apply_to(std::byte* image, coherence::Problem* problem) noexcept {
    bool changed = false;
    while (Ring* ring = next()) {
      const auto applied = apply_one(*ring->index, ring->changes.front(), image, problem);
      if (!applied) return applied.error();
      changed |= *applied == Applied::kChanged;
      ring->changes = ring->changes.subspan(1);
    }
    return changed;
  }

 private:
  struct Ring {
    const RingIndex* index;
    std::span<const RingIndex::Change> changes;
  };
  // The one with the lowest version.
  Ring* next() noexcept {
    Ring* first = nullptr;
    for (int i = 0; i < rings_; ++i) {
      Ring& ring = ring_[i];
      if (ring.changes.empty()) continue;
      if (first == nullptr || ring.changes.front().version < first->changes.front().version) first = &ring;
    }
    return first;
  }
  static coherence::Result<Applied> apply_one(const RingIndex& index, const RingIndex::Change& change, std::byte* image,
                                              coherence::Problem* problem) noexcept {
    bufmgr::RecordReader reader(index.record(change));
    while (const bufmgr::RecordPage* page = reader.next_page())
      if (page->page == change.page) return apply(reader, *page, image, problem);
    return problem->set(coherence::Errc::kCorrupt, "a record does not have the page that it had");
  }

  Ring ring_[coherence::kNodesMax];
  int rings_ = 0;
};

}  // namespace recovery

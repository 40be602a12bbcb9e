// bufmgr, broken on purpose: what the provider and the callers of bells are given in place of the product's own
// functions, whose sources are compiled with other names.
#include <algorithm>
#include <cstring>

#include "bufmgr/bell.hpp"
#include "bufmgr/node_shared.hpp"
#include "coherence/session.hpp"
#include "mutation.hpp"
#include "scheduler.hpp"

namespace bufmgr {

void product_remove(FrameTable*, PageId, uint32_t) noexcept
    asm("_ZN6bufmgr10FrameTable14product_removeEN9coherence6PageIdEj");
void product_ring_bell(std::atomic<uint32_t>& word) noexcept;

void FrameTable::remove(PageId page, uint32_t frame) noexcept {
  if (sim::mutation == sim::Mutation::kNotUnpublished && sim::scheduler()->random().one_in(8)) return;
  if (sim::mutation == sim::Mutation::kUnpublishedFirst) return;  // it was, below
  product_remove(this, page, frame);
}

void ring_bell(std::atomic<uint32_t>& word) noexcept {
  if (sim::mutation != sim::Mutation::kBellLost) product_ring_bell(word);
}

}  // namespace bufmgr

namespace coherence {

int product_try_evict(Session*, Line* const*, const PageId*, bool*,
                      int) asm("_ZN9coherence7Session17product_try_evictEPKPNS_4LineEPKNS_6PageIdEPbi");

int Session::try_evict(Line* const* lines, const PageId* pages, bool* evicted, int count) {
  const bool bufmgrs = node_.private_bytes() > bufmgr::ArenaPlan::make(node_.frames(), node_.sessions_max(), 0).table;
  if (bufmgrs && sim::mutation == sim::Mutation::kUnpublishedFirst) {
    const auto plan = bufmgr::ArenaPlan::make(node_.frames(), node_.sessions_max(), 0);
    bufmgr::FrameTable table(node_.private_memory() + plan.table, node_.frames());
    for (int i = 0; i < count; i++) {
      const uint32_t frame = node_.index_of(*lines[i]);
      if (table.find(pages[i], [&](uint32_t f) { return f == frame && node_.line(f).page() == pages[i]; }) == frame)
        bufmgr::product_remove(&table, pages[i], frame);
    }
  }
  int done = product_try_evict(this, lines, pages, evicted, count);
  if (sim::mutation == sim::Mutation::kLatchedFreed)
    for (int i = 0; i < count; i++) {
      if (evicted[i] || lines[i]->page() != pages[i] || !lines[i]->word().shared()) continue;
      evicted[i] = true;
      done++;
    }
  return done;
}

}  // namespace coherence

#include "extension/engine/blink/erase.hpp"

#include <algorithm>
#include <type_traits>

#include "extension/engine/blink/image.hpp"

namespace engine::blink {

static_assert(std::is_trivially_destructible_v<DeadEntries>);  // blink.compare-private-memory

Erased take_out(bufmgr::MiniTransaction& change, bufmgr::ExclusiveGuard& page, const Head& head,
                std::span<const Tid> dead) {
  Link links[kPerPageMax];
  Erased result{.right = head.special.right};
  uint32_t first = head.count, garbage = head.special.garbage;
  for (uint32_t i = 0; i < head.count; ++i) {
    Link link;
    VERIFY(read_link(Source::plain(page.bytes()), head, i, link));
    if (!std::binary_search(dead.begin(), dead.end(), load_tid(page.bytes() + link.offset))) {
      links[result.kept++] = link;
      continue;
    }
    if (result.gone++ == 0) first = i;
    garbage += align8(link.bytes);
  }
  if (result.gone == 0) return result;
  change.join(page);
  const auto moved = uint32_t((result.kept - first) * sizeof(Link));
  if (moved != 0) change.write(page, kPageBody + first * uint32_t(sizeof(Link)), links + first, moved);
  change.set(page, offsetof(PageHeader, lower), uint16_t(kPageBody + result.kept * sizeof(Link)));
  change.set(page, kSpecialAt + offsetof(Special, garbage), uint16_t(garbage));
  return result;
}

namespace {

Result<Erased> erase_from(bufmgr::MiniTransaction& change, Result<bufmgr::ExclusiveGuard> page, DeadEntries& dead) {
  if (!page) return page.error();
  const Head head = head_of(*page);
  if (!head.leaf()) return Errc::kRestart;
  std::sort(dead.tid, dead.tid + dead.count);
  const Erased result = take_out(change, *page, head, {dead.tid, dead.count});
  if (result.gone != 0) change.commit();
  return result;
}

// Whether the leaf is here as it was read, so that it is worth taking from its sharers.
bool unchanged(const Ground& g, const DeadEntries& dead) {
  const bufmgr::OptimisticGuard optimistic = g.pool->peek(*g.session, dead.leaf);
  return optimistic && optimistic.get<uint64_t>(offsetof(PageHeader, version)) == dead.version && optimistic.validate();
}

}  // namespace

Result<Erased> erase(const Ground& g, DeadEntries& dead) {
  bufmgr::MiniTransaction change(*g.pool, *g.session);
  GCL_TRY(change.reserve(log_space(1)));
  return erase_from(change, g.pool->fix_exclusive(*g.session, dead.leaf, bufmgr::Others::kOfOtherParts), dead);
}

Result<uint32_t> erase_if_cheap(const Ground& g, DeadEntries& dead) {
  if (dead.count < kEraseMin) return 0u;
  bufmgr::MiniTransaction change(*g.pool, *g.session);
  GCL_TRY(change.reserve(log_space(1)));
  auto page = g.pool->try_exclusive(*g.session, dead.leaf);
  if (!page && page.error() == Errc::kWouldBlock && dead.count >= kEraseShared && unchanged(g, dead))
    page = g.pool->fix_exclusive(*g.session, dead.leaf, bufmgr::Others::kOfOtherParts);
  auto erased = erase_from(change, std::move(page), dead);
  if (erased) return erased->gone;
  const Errc error = erased.error();
  const bool busy = error == Errc::kWouldBlock || error == Errc::kRestart || error == Errc::kHeld;
  return busy ? Result<uint32_t>(0u) : Result<uint32_t>(error);
}

Result<uint32_t> Tree::forget(Session& session, DeadEntries& dead) const {
  return erase_if_cheap({pool_, &session, meta_, root_}, dead);
}

}  // namespace engine::blink

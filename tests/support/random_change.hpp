// A mini-transaction of every kind of step, on one to three of some pages.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <set>
#include <vector>

#include "bufmgr/buffer_pool.hpp"
#include "bufmgr/mini_transaction.hpp"

namespace gcl_test {

// Pages are taken in order of their numbers.
inline void random_change(bufmgr::BufferPool& pool, bufmgr::Session& session, const std::vector<bufmgr::PageId>& pages,
                          std::mt19937_64& random) {
  using bufmgr::kPageSize;
  auto below = [&](uint32_t n) { return uint32_t(random() % n); };
  std::set<bufmgr::PageId> chosen;
  for (uint32_t i = below(3) + 1; i > 0; --i) chosen.insert(pages[below(uint32_t(pages.size()))]);
  bufmgr::MiniTransaction change(pool, session);
  ASSERT_TRUE(change.reserve(40000));
  std::vector<bufmgr::ExclusiveGuard> guards;
  guards.reserve(chosen.size());
  for (const bufmgr::PageId id : chosen) {
    session.next_wait(bufmgr::WaitOrder::kById);
    auto guard = pool.fix_exclusive(session, id);
    ASSERT_TRUE(guard.ok());
    guards.push_back(guard.take());
    change.join(guards.back());
  }
  std::byte noise[512];
  for (auto& b : noise) b = std::byte(below(3) == 0 ? 0 : random());
  for (uint32_t steps = below(100) + 1; steps > 0; --steps) {
    bufmgr::ExclusiveGuard& page = guards[below(uint32_t(guards.size()))];
    const uint32_t bytes = below(200) + 1, at = 40 + below(kPageSize - 40 - bytes);
    switch (below(14)) {
      case 0:
        change.zero(page, at, bytes);
        break;
      case 1:
      case 2:
        change.move(page, at, 40 + below(kPageSize - 40 - bytes), bytes);
        break;
      case 3:
        memcpy(change.edit(page, at, bytes), noise, bytes);
        break;
      case 4:
        change.set(page, at, uint16_t(random()));
        break;
      case 5:
        if (below(8) == 0) change.format(page, bufmgr::PageType::kHeap, below(1000), uint16_t(8 * below(10)));
        break;
      case 6:
      case 7: {  // bytes like others, but for some in the middle
        const uint32_t like_bytes = below(250) + 1, like = 40 + below(kPageSize - 40 - like_bytes);
        if (at < like + like_bytes && like < at + bytes) break;
        std::byte fresh[200];
        memcpy(fresh, noise, bytes);
        const uint32_t start = below(std::min(bytes, like_bytes) + 1), end = std::min(bytes, like_bytes) - start;
        memcpy(fresh, page.bytes() + like, start);
        memcpy(fresh + bytes - end, page.bytes() + like + like_bytes - end, end);
        change.write_like(page, at, fresh, bytes, like, like_bytes);
        break;
      }
      case 8: {  // what is there, but for some in the middle
        std::byte fresh[200];
        memcpy(fresh, page.bytes() + at, bytes);
        const uint32_t from = below(bytes);
        memcpy(fresh + from, noise, below(bytes - from + 1));
        change.update(page, at, fresh, bytes);
        break;
      }
      default:
        change.write(page, at, noise + below(300), bytes);
        break;
    }
  }
  change.commit();
}

}  // namespace gcl_test

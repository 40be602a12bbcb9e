// Everything at once: locks, upgrades, holds, evictions, write-backs, interrupts, a slow log; then the sums.
#include <algorithm>
#include <chrono>
#include <random>

#include "cluster.hpp"
#include "tests/support/eventually.hpp"
#include "tests/support/longer.hpp"
#include "tests/support/pool_bytes.hpp"

namespace coherence {

class Chaos : public ClusterTest {};

TEST_F(Chaos, EveryIncrementIsThereInTheEnd) {
  constexpr int kNodes = 3, kThreads = 3, kHot = 6;
  for (int i = 0; i < kNodes; i++) add_node(8);
  std::atomic<uint64_t> done[kHot] = {};
  std::atomic<uint64_t> clock[kNodes] = {};
  std::atomic<bool> torn{false}, enough{false}, stop{false};
  std::atomic<int> copies{0};
  struct Sometimes : Interrupts {
    std::mt19937 random;
    bool pending() noexcept override { return random() % 50 == 0; }
  };
  auto flusher = std::thread([&] {
    while (!stop) {
      for (int n = 0; n < kNodes; n++) {
        nodes[n]->horizon.flushed_lsn = clock[n].load();
        nodes[n]->node->ring();
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  });
  auto body = [&](int n, int t) {
    TestNode& node = *nodes[n];
    Sometimes sometimes;
    sometimes.random.seed(gcl_test::seed(n * 31 + t));
    Session session(*node.node, SessionId{uint16_t(t)}, &sometimes);
    std::mt19937 random(gcl_test::seed(n * 10 + t + 1));
    auto same = [&](Line& l) { return read_word(*node.node, l) == read_word(*node.node, l, 4096); };
    while (!enough) {
      uint32_t k = random() % kHot;
      PageId p = page(k);
      Line& l = node.line(session, p);
      switch (random() % 9) {
        case 0:
        case 1:
        case 2: {
          if (!session.lock_exclusive(l, p)) break;
          uint64_t v = read_word(*node.node, l) + 1, lsn = ++clock[n];
          if (!same(l)) torn = true;
          write_word(*node.node, l, v, Lsn{lsn});
          write_word(*node.node, l, v, Lsn{lsn}, 4096);
          if (random() % 8 == 0) {
            session.hold(l, true, 1 + n);
            session.unlock_exclusive(l);
            std::this_thread::yield();
            session.drop_hold(l, true, 1 + n);
          } else if (random() % 4 == 0) {
            session.downgrade(l);
            if (!same(l)) torn = true;
            session.unlock_shared(l);
          } else {
            session.unlock_exclusive(l);
          }
          done[k]++;
          break;
        }
        case 3:
          if (!session.lock_shared(l, p, random() % 2 ? Intent::kWrite : Intent::kRead)) break;
          if (!same(l)) torn = true;
          if (random() % 4 == 0) {
            session.hold(l, false);
            session.unlock_shared(l);
            if (!session.try_lock_shared(l, p)) {
              session.drop_hold(l, false);
              break;
            }
            if (!same(l)) torn = true;
            session.unlock_shared(l);
            session.drop_hold(l, false);
          } else {
            session.unlock_shared(l);
          }
          break;
        case 4: {
          uint64_t token;
          if (!l.begin_optimistic(p, &token)) break;
          bool equal = same(l);
          if (l.validate(token) && !equal) torn = true;
          if (random() % 2 && session.try_upgrade(l, p, token)) {
            if (!same(l)) torn = true;
            session.unlock_exclusive(l);
          }
          break;
        }
        case 5:
          (void)session.write_back(l, p);
          session.serve_flushed();
          break;
        case 6:
          node.evict(session, p);
          break;
        case 8: {
          ReadAccess how;
          if (!session.begin_read(l, p, &how)) break;
          if (!same(l)) torn = true;
          copies += how == ReadAccess::kCopied;
          session.end_read(l, how);
          break;
        }
        case 7:
          if (session.try_lock_exclusive(l, p)) session.unlock_exclusive(l);
          break;
      }
    }
  };
  std::vector<std::thread> threads;
  for (int n = 0; n < kNodes; n++)
    for (int t = 0; t < kThreads; t++) threads.emplace_back(body, n, t);
  std::this_thread::sleep_for(gcl_test::longer(std::chrono::seconds(2)));
  EXPECT_TRUE(gcl_test::eventually(
      [&] { return copies > 0 && std::ranges::all_of(done, [](const auto& of_page) { return of_page > 0; }); }));
  enough = true;
  for (auto& t : threads) t.join();
  EXPECT_FALSE(torn);
  printf("%d copies of held pages\n", copies.load());
  Problem problem;
  for (int n = 0; n < kNodes; n++) {  // all leave in order: nothing hangs on, no word is left owned
    nodes[n]->stop();
    Session session(*nodes[n]->node, SessionId{0}, nullptr);
    bool last;
    EXPECT_TRUE(nodes[n]->node->leave(session, &last, &problem).ok()) << problem.text;
    EXPECT_EQ(last, n == kNodes - 1);
  }
  stop = true;
  flusher.join();
  for (uint32_t k = 0; k < kHot; k++) {
    uint64_t value;
    memcpy(&value, gcl_test::pool_bytes(*pool, page(k)), 8);
    EXPECT_EQ(value, done[k]);
  }
}

}  // namespace coherence

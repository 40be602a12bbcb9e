// In virtual time, over the far transport: hand-overs of different pages travel beside each other.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "cluster.hpp"
#include "coherence/session.hpp"
#include "coherence/transport/shm/local_pool.hpp"
#include "far_transport.hpp"
#include "home.hpp"

namespace sim {
namespace {

constexpr int kRuns = 40;
constexpr uint16_t kWorker = 63;

// Node 0 has written pages, and users of node 1 want one each, at once.
class Wanted {
 public:
  Wanted(uint64_t seed, int pages) : scheduler_(seed, Pace{.late_one_in = 1}, 2), pages_(pages) {
    findings = Findings{};
    begin_mutation(Mutation::kNone);
    forget_batches();
    const std::string path = home() + "/pool";
    PoolSpec spec{.nodes_max = 2, .memory_nodes = 2, .compatibility = "sim=1\n"};
    spec.region_bytes[kRegionPages] = spec.further_pages_bytes = uint64_t(pages) * kPageSize;
    Problem problem;
    auto made = LocalPool::create({.path = path.c_str(), .compatibility = "sim=1\n"}, spec, &problem);
    if (!made) fprintf(stderr, "%s\n", problem.text), abort();
    pool_ = made.take();
    for (int n = 0; n < 2; n++) {
      directory_.emplace_back(pages);
      auto joined = Node::join(*pool_, NodeId{uint8_t(n)},
                               {.frames = uint32_t(pages), .sessions_max = kWorker + 1, .private_bytes = 4096},
                               &problem, shm_transport());
      if (!joined) fprintf(stderr, "%s\n", problem.text), abort();
      node_.push_back(joined.take());
      node_[size_t(n)]->set_transport(far_);
    }
    for (size_t n = 0; n < 2; n++) node_[n]->set_upcalls(&directory_[n], nullptr);
    share_mapping(*node_[0], *node_[1]);
  }
  ~Wanted() {
    node_.clear();
    pool_.reset();
    empty_home();
  }

  // When half of them have theirs, since the first asked.
  uint64_t half_ns() {
    for (int n = 0; n < 2; n++)
      scheduler_.spawn(n, [this, n] {
        Session session(*node_[size_t(n)], SessionId{kWorker}, nullptr);
        while (got_.size() < size_t(pages_))
          if (!session.serve(1)) return;
        session.flush_messages();
      });
    scheduler_.spawn(0, [this] {
      for (int i = 0; i < pages_; i++) write(0, i);
      written_ = true;
    });
    for (int i = 0; i < pages_; i++)
      scheduler_.spawn(1, [this, i] {
        while (!written_) scheduler_.sleep(kUs);
        if (began_ns_ == 0) began_ns_ = scheduler_.now();
        write(1, i);
      });
    EXPECT_EQ(scheduler_.run(2'000 * kMs), Scheduler::Ended::kNobodyLeft) << findings.text;
    EXPECT_EQ(got_.size(), size_t(pages_));
    return got_.size() < size_t(pages_) ? 0 : got_[size_t(pages_ - 1) / 2] - began_ns_;
  }
  uint64_t overlapped() const { return node_[0]->counters(SessionId{kWorker}).get(Counter::kOverlapped); }

 private:
  void write(int n, int i) {
    const PageId page = Directory::page(i);
    Session session(*node_[size_t(n)], SessionId{uint16_t(i)}, nullptr);
    Line& line = node_[size_t(n)]->line(uint32_t(i));
    if (!session.assign(line, page, [&] { directory_[size_t(n)].lines[size_t(i)] = &line; })) return;
    if (!session.lock_exclusive(line, page)) return;
    if (n == 1) got_.push_back(scheduler_.now());
    const uint64_t mask[2] = {1, 0};
    line.note_change(mask, {}, 0);
    session.unlock_exclusive(line);
  }

  Scheduler scheduler_;
  FarTransport far_{Options{}};
  const int pages_;
  std::unique_ptr<Pool> pool_;
  std::vector<Directory> directory_;
  std::vector<std::unique_ptr<Node>> node_;
  std::vector<uint64_t> got_;
  uint64_t began_ns_ = 0;
  bool written_ = false;
};

// The worker of node 0 hands over twelve pages; one after the other half of them would take six round trips.
TEST(UnderWay, ManyHandOversTakeLittleLongerThanOne) {
  constexpr int kMany = 12;
  uint64_t one = 0, many = 0, overlapped = 0;
  for (uint64_t seed = 0; seed < kRuns; seed++) {
    one += Wanted(seed, 1).half_ns();
    Wanted wanted(seed, kMany);
    many += wanted.half_ns();
    overlapped += wanted.overlapped();
  }
  printf("one: %llu ns, half of twelve: %llu ns; %.1f of eleven posted beside another\n",
         static_cast<unsigned long long>(one / kRuns), static_cast<unsigned long long>(many / kRuns),
         double(overlapped) / kRuns);
  EXPECT_LT(many, 2 * one);
  EXPECT_GT(overlapped, kRuns * kMany / 2);
}

}  // namespace
}  // namespace sim

#include "bench/paper/network.hpp"

#include <algorithm>
#include <utility>

namespace paper {
namespace {

constexpr uint64_t kHandIdleNs = 1'000'000'000;

}  // namespace

Network::Network(const Costs& costs, int compute, int memory, uint32_t gcl, uint64_t remote_cores, bool stranded)
    : costs_(costs), compute_(compute), memory_(memory), gcl_(gcl), stations_(size_t(compute + memory)) {
  for (int n = 0; n < compute + memory; n++) {
    Station& s = stations_[size_t(n)];
    s.cores.resize(n < compute ? costs.message_cores : remote_cores);
    if (n >= compute && remote_cores == 1) s.share = stranded ? costs.stranded_share : costs.remote_share;
  }
}

void Network::batch(int from, int to, const std::vector<Verb>& verbs, const std::function<void()>& effect) {
  Nic& mine = stations_[size_t(from)].nic;
  Nic& theirs = stations_[size_t(to)].nic;
  uint64_t sent = 0, received = 0, at = sim::scheduler()->now();
  for (const Verb& v : verbs) {
    at = mine.out.take(mine.issue.take(at, costs_.issue_ns), ns(v.sent));
    sent += v.sent + costs_.header_bytes;
    received += v.received + costs_.header_bytes;
  }
  traffic.round_trips++;
  traffic.bytes += sent + received;
  wait_until(at + costs_.round_trip_ns / 2);
  at = theirs.in.take(sim::scheduler()->now(), ns(sent));
  for (const Verb& v : verbs) {
    at = theirs.respond.take(at, costs_.respond_ns);
    if (v.atomic) at = theirs.atomic.take(at, costs_.atomic_ns);
  }
  wait_until(at);
  effect();
  wait_until(theirs.out.take(at, ns(received)) + costs_.round_trip_ns / 2);
  wait_until(mine.in.take(sim::scheduler()->now(), ns(received)));
}

void Network::travel(int from, int to, uint64_t bytes) {
  Nic& mine = stations_[size_t(from)].nic;
  traffic.messages++;
  traffic.bytes += bytes + costs_.header_bytes;
  const uint64_t out = mine.out.take(mine.issue.take(sim::scheduler()->now(), costs_.issue_ns), ns(bytes));
  wait_until(out + costs_.round_trip_ns / 2);
  wait_until(stations_[size_t(to)].nic.in.take(sim::scheduler()->now(), ns(bytes)));
}

void Network::travel_along(int from, int to, uint64_t bytes) {
  Nic& mine = stations_[size_t(from)].nic;
  traffic.messages++;
  traffic.bytes += bytes + costs_.header_bytes;
  wait_until(mine.out.take(mine.issue.take(sim::scheduler()->now(), costs_.issue_ns), ns(bytes)));
  wait_until(stations_[size_t(to)].nic.in.take(sim::scheduler()->now(), ns(bytes)));
}

void Network::carry(int from, int to, uint64_t bytes) {
  traffic.bytes += bytes;
  const uint64_t takes = bytes * 1000 / costs_.bytes_per_us;
  wait_until(stations_[size_t(from)].nic.out.take(sim::scheduler()->now(), takes));
  wait_until(stations_[size_t(to)].nic.in.take(sim::scheduler()->now(), takes));
}

void Network::handle(int node, uint64_t ns) {
  Station& s = stations_[size_t(node)];
  const uint64_t takes = ns * 100 / s.share, now = sim::scheduler()->now();
  wait_until(std::min_element(s.cores.begin(), s.cores.end())->take(now, takes));
}

void Crew::run(std::function<void()> task) {
  if (idle_.empty()) {
    hands_.push_back(std::make_unique<Hand>());
    Hand& hand = *hands_.back();
    hand.task = std::move(task);
    sim::scheduler()->spawn(node_, [this, &hand] { work(hand); });
    return;
  }
  Hand& hand = *idle_.back();
  idle_.pop_back();
  hand.task = std::move(task);
  hand.wakeup++;
  sim::scheduler()->wake(&hand.wakeup, 1);
}

void Crew::work(Hand& hand) {
  for (;;) {
    hand.task();
    hand.task = nullptr;
    const uint32_t seen = hand.wakeup;
    idle_.push_back(&hand);
    while (hand.wakeup == seen) sim::scheduler()->park(&hand.wakeup, seen, kHandIdleNs);
  }
}

}  // namespace paper

// Two links and the bytes between them, without sockets: cut anywhere, as often as a test likes.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "coherence/transport/net/admission.hpp"
#include "coherence/transport/net/link.hpp"

namespace gcl_test {

using namespace coherence;       // NOLINT: of tests
using namespace coherence::net;  // NOLINT

inline std::span<const std::byte> bytes_of(const std::string& text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

struct Received final : FrameSink {
  void frame(Link& link, uint16_t type, std::span<const std::byte> payload) override {
    EXPECT_EQ(reinterpret_cast<uintptr_t>(payload.data()) % 8, 0u);
    types.push_back(type);
    texts.emplace_back(reinterpret_cast<const char*>(payload.data()), payload.size());
    if (then) then(link);
  }
  void greeted(Link&) override { greetings++; }
  std::vector<uint16_t> types;
  std::vector<std::string> texts;
  void (*then)(Link&) = nullptr;
  int greetings = 0;
};

class LinkPair {
 public:
  static constexpr uint64_t kSecond = 1'000'000'000;
  struct Settings {
    Who dialer = Who::node(NodeId{3}, 17);
    Who acceptor = Who::memory_node(MemoryNodeId{1}, 1000);
    uint32_t window = 64 * 1024;
    LinkTimes times = {};
  };

  LinkPair() : LinkPair(Settings()) {}
  explicit LinkPair(const Settings& settings) : settings_(settings), admission(settings.acceptor, kCluster, 8) {
    const Who to = Who{settings.acceptor.role, settings.acceptor.id, 0};
    a = Link::dialing({settings.dialer, to, kCluster, 4711, settings.window, settings.times}, now);
  }

  // --- the network

  void connect() {
    up = true;
    hello_.clear();
    to_a.clear(), to_b.clear();
    a->attach(now);
  }
  void cut() {
    up = false;
    if (a->attached()) a->detach("cut", now);
    if (b && b->attached()) b->detach("cut", now);
    to_a.clear(), to_b.clear();
  }
  // At most so many bytes of what a side has to send go under way.  How many did.
  size_t send(Link& from, size_t most) {
    size_t done = 0;
    while (done < most) {
      iovec pieces[Link::kOutputPieces];
      const int count = from.output(pieces);
      size_t bytes = 0;
      for (int i = 0; i < count && done + bytes < most; i++) {
        const auto* at = static_cast<const std::byte*>(pieces[i].iov_base);
        const size_t some = std::min(pieces[i].iov_len, most - done - bytes);
        auto& way = &from == a.get() ? to_b : to_a;
        way.insert(way.end(), at, at + some);
        bytes += some;
      }
      if (bytes == 0) break;
      from.sent(bytes);
      done += bytes;
    }
    return done;
  }
  // At most so many of those under way arrive.
  size_t arrive_at_a(size_t most) {
    size_t done = 0;
    while (done < most && !to_a.empty() && a->attached() && !a->over()) done += feed(*a, to_a, most - done, got_a);
    return done;
  }
  size_t arrive_at_b(size_t most) {
    size_t done = 0;
    while (done < most && !to_b.empty()) {
      if (hello_.size() < kHelloBytes) {
        const size_t some = std::min({most - done, to_b.size(), kHelloBytes - hello_.size()});
        hello_.insert(hello_.end(), to_b.begin(), to_b.begin() + ptrdiff_t(some));
        to_b.erase(to_b.begin(), to_b.begin() + ptrdiff_t(some));
        done += some;
        if (hello_.size() == kHelloBytes) greet();
      } else if (b && b->attached() && !b->over()) {
        done += feed(*b, to_b, most - done, got_b);
      } else {
        break;
      }
    }
    return done;
  }
  // Until nothing moves any more.
  void deliver_all() {
    for (size_t moved = 1; moved > 0 && up;) {
      moved = send(*a, kAll) + (b ? send(*b, kAll) : 0);
      moved += arrive_at_b(kAll) + arrive_at_a(kAll);
    }
  }
  void pass(uint64_t ns) {
    now += ns;
    a->tick(now);
    if (b) b->tick(now);
  }

  static constexpr size_t kAll = ~size_t{0};
  static constexpr uint64_t kCluster = 99;

 private:
  size_t feed(Link& link, std::vector<std::byte>& way, size_t most, Received& got) {
    const std::span<std::byte> room = link.input();
    EXPECT_FALSE(room.empty());
    const size_t some = std::min({most, way.size(), room.size()});
    memcpy(room.data(), way.data(), some);
    way.erase(way.begin(), way.begin() + ptrdiff_t(some));
    link.received(some, now, got);
    return some;
  }
  void greet() {
    Hello hello;
    Problem problem;
    const Status read =
        read_hello(std::span<const std::byte, kHelloBytes>(hello_.data(), kHelloBytes), &hello, &problem);
    ASSERT_TRUE(read.ok()) << problem.text;
    const Admission::Decision decision = admission.judge(hello);
    if (decision.refusal != Refusal::kNone) return refuse(decision.refusal, decision.reason);
    if (!decision.link) {
      b = Link::accepting({settings_.acceptor, hello.from, kCluster, hello.link, settings_.window, settings_.times},
                          now);
      admission.begun(*b);
    }
    if (b->attached()) b->detach("it has connected anew", now);
    if (!b->attach(hello, now)) refuse(Refusal::kUnknownLink, b->reason());
  }
  void refuse(Refusal refusal, const char* reason) {
    Welcome welcome{refusal, settings_.acceptor};
    snprintf(welcome.reason, sizeof welcome.reason, "%.103s", reason);
    to_a.resize(kWelcomeBytes);
    write_welcome(welcome, std::span<std::byte, kWelcomeBytes>(to_a.data(), kWelcomeBytes));
  }

  const Settings settings_;
  std::vector<std::byte> hello_;

 public:
  Admission admission;
  uint64_t now = kSecond;
  bool up = false;
  std::unique_ptr<Link> a, b;  // dials; accepts, once it has been greeted
  std::vector<std::byte> to_a, to_b;
  Received got_a, got_b;
};

}  // namespace gcl_test

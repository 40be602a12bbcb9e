// Memory nodes, nodes and raw peers of the tcp transport in one thread: the test says which of them runs.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "coherence/transport/tcp/memory/tcp_memory.hpp"
#include "tests/support/tcp_nodes.hpp"

namespace coherence::tcp {

inline constexpr MemoryNodeId kZero{0}, kOne{1};
inline constexpr uint64_t kRegionBytes = 256 << 10;

// What was logged.
class Lines final : public Log {
 public:
  void line(const char* text) noexcept override { all += std::string(text) + "\n"; }
  bool tell(const std::string& part) const { return all.find(part) != std::string::npos; }
  std::string all;
};

// A memory node; its words outlive its server.
class Served {
 public:
  Served(const gcl_test::SocketDirectory& directory, MemoryNodeId id) : directory_(directory), id_(id) { start(); }
  void start(net::LinkTimes times = {}, uint32_t window = 4u << 20) {
    server.reset();
    unlink((directory_.path() + "/" + name()).c_str());
    server = gcl_test::must(
        MemoryServer::make(memory_,
                           {.id = id_, .bytes = kRegionBytes, .start = ++starts_, .window = window, .times = times},
                           net::Credentials::plain(), log, &problem_),
        problem_);
    gcl_test::must(server->listen(gcl_test::endpoints(address()), &problem_), problem_);
  }
  std::string address() const { return directory_.socket(name()); }
  uint64_t& word(uint64_t i) { return words_[i]; }
  std::byte* bytes() { return reinterpret_cast<std::byte*>(words_.data()); }

  Lines log;
  std::unique_ptr<MemoryServer> server;

 private:
  std::string name() const { return "memory" + std::to_string(id_.value); }
  const gcl_test::SocketDirectory& directory_;
  const MemoryNodeId id_;
  std::vector<uint64_t> words_ = std::vector<uint64_t>(kRegionBytes / 8);
  gcl_test::OneRegion region_{id_, bytes()};
  Counters counters_{};
  ShmMemory memory_{region_, counters_};
  Problem problem_;
  uint64_t starts_ = 0;
};

// A peer that has a link and sends what it likes.
class RawPeer final : public net::LinksUser {
 public:
  explicit RawPeer(net::Who who = net::Who::node(NodeId{7}, 1))
      : links(gcl_test::must(net::Links::make({.self = who}, net::Credentials::plain(), *this, &problem_), problem_)) {}
  void dial(net::Who to, const std::string& address) {
    link = gcl_test::must(links->dial(to, gcl_test::endpoints(address), &problem_), problem_);
  }
  void frame(net::Link&, uint16_t type, std::span<const std::byte> payload) override {
    frames.emplace_back(type, std::vector<std::byte>(payload.begin(), payload.end()));
  }
  void begun(net::Link& one) override { link = &one; }
  void over(net::Link& one) override {
    ended_because = one.reason();
    link = nullptr;
  }
  void log(const char*) override {}

 private:
  Problem problem_;

 public:
  std::unique_ptr<net::Links> links;
  net::Link* link = nullptr;  // null: there is none, or it is over
  std::string ended_because;
  std::vector<std::pair<uint16_t, std::vector<std::byte>>> frames;
};

}  // namespace coherence::tcp

// Party: a process with links, as far as a test needs one.  All parties of a test take turns in one thread.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "coherence/transport/net/links.hpp"
#include "tests/support/eventually.hpp"

namespace gcl_test {

using namespace coherence;       // NOLINT: of tests
using namespace coherence::net;  // NOLINT

inline Endpoints endpoints_of(const std::string& text) {
  Problem problem;
  Result<Address> address = Address::parse(text, &problem);
  EXPECT_TRUE(address.ok()) << problem.text;
  Result<Endpoints> found = address->resolve(&problem);
  EXPECT_TRUE(found.ok()) << problem.text;
  return *found;
}

class Party final : public LinksUser {
 public:
  Party(const Links::Spec& spec, Credentials credentials) {
    Problem problem;
    links = Links::make(spec, std::move(credentials), *this, &problem).take();
  }
  void listen(const std::string& address = "127.0.0.1:0") {
    Problem problem;
    EXPECT_TRUE(links->listen(endpoints_of(address), &problem).ok()) << problem.text;
  }
  std::string address() const { return "127.0.0.1:" + std::to_string(links->port()); }
  Link* dial(const std::string& address, Who to = Who::memory_node(MemoryNodeId{0}, 0)) {
    Problem problem;
    Result<Link*> link = links->dial(to, endpoints_of(address), &problem);
    EXPECT_TRUE(link.ok()) << problem.text;
    return link ? *link : nullptr;
  }
  bool logged(const std::string& part) const {
    for (const std::string& line : lines)
      if (line.find(part) != std::string::npos) return true;
    return false;
  }
  std::string log_text() const {
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    return text;
  }

  void frame(Link& link, uint16_t type, std::span<const std::byte> payload) override {
    frames.emplace_back(reinterpret_cast<const char*>(payload.data()), payload.size());
    if (on_frame) on_frame(link, type, payload);
  }
  void begun(Link& link) override { at_hand.push_back(&link); }
  void disconnected(Link&) override { disconnections++; }
  void reconnected(Link&) override { reconnections++; }
  void room(Link& link) override {
    if (on_room) on_room(link);
  }
  void over(Link& link) override {
    std::erase(at_hand, &link);
    endings.push_back(link.ending());
    reasons.emplace_back(link.reason());
  }
  void log(const char* line) override { lines.emplace_back(line); }

  std::unique_ptr<Links> links;
  std::vector<std::string> lines, frames, reasons;
  std::vector<Link*> at_hand;
  std::vector<Ending> endings;
  std::function<void(Link&, uint16_t, std::span<const std::byte>)> on_frame;
  std::function<void(Link&)> on_room;
  int disconnections = 0, reconnections = 0;
};

// Whether it comes about while the parties work.
template <class Condition>
bool while_they_work(std::initializer_list<Party*> parties, const Condition& condition) {
  return eventually([&] {
    for (Party* const party : parties) party->links->wait(1);
    return condition();
  });
}

inline Links::Spec memory_node(uint64_t start = 100) {
  Links::Spec spec;
  spec.self = Who::memory_node(MemoryNodeId{0}, start);
  return spec;
}

inline Links::Spec node(uint64_t start = 1, uint8_t id = 3) {
  Links::Spec spec;
  spec.self = Who::node(NodeId{id}, start);
  return spec;
}

// A client that is none of ours.
class Stranger {
 public:
  explicit Stranger(const Party& party) : fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    const Endpoint to = endpoints_of(party.address()).at[0];
    EXPECT_EQ(connect(fd, to.raw(), to.bytes), 0);
    fcntl(fd, F_SETFL, O_NONBLOCK);
  }
  ~Stranger() { close(fd); }
  Stranger(const Stranger&) = delete;
  void say(const void* bytes, size_t count) { EXPECT_EQ(send(fd, bytes, count, MSG_NOSIGNAL), ssize_t(count)); }
  // What came meanwhile is in `heard`; whether the other side has hung up.
  bool hung_up() {
    char bytes[4096];
    for (;;) {
      const ssize_t n = recv(fd, bytes, sizeof bytes, 0);
      if (n <= 0) return n == 0 || errno == ECONNRESET;
      heard.append(bytes, size_t(n));
    }
  }
  const int fd;
  std::string heard;
};

}  // namespace gcl_test

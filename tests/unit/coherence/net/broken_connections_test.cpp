// Links through something that cuts their connections: with TLS, sockets, and everything.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <random>

#include "certificates.hpp"
#include "link_pair.hpp"
#include "party.hpp"
#include "tests/support/longer.hpp"

namespace gcl_test {

// Passes bytes on from one address to another, and cuts all of its connections when told so.
class Cable {
 public:
  explicit Cable(const std::string& to) : to_(endpoints_of(to).at[0]) {
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const Endpoint any = endpoints_of("127.0.0.1:0").at[0];
    EXPECT_EQ(bind(listener_, any.raw(), any.bytes), 0);
    EXPECT_EQ(listen(listener_, 16), 0);
  }
  ~Cable() {
    cut();
    close(listener_);
  }
  Cable(const Cable&) = delete;
  std::string address() const {
    Endpoint at;
    at.bytes = sizeof at.at;
    EXPECT_EQ(getsockname(listener_, reinterpret_cast<sockaddr*>(&at.at), &at.bytes), 0);
    return at.name().text;
  }
  // At most so many bytes each way.  How many did.
  size_t pass_on(size_t most) {
    if (const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK); fd >= 0) {
      cut();
      ends_[0] = fd;
      ends_[1] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
      EXPECT_EQ(connect(ends_[1], to_.raw(), to_.bytes), 0);
    }
    return pass(0, most) + pass(1, most);
  }
  // With a reset or without: what was under way is lost.
  void cut(bool reset = false) {
    for (int& fd : ends_) {
      const linger hard{1, 0};
      if (fd >= 0 && reset) setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
      if (fd >= 0) close(fd);
      fd = -1;
    }
  }

 private:
  size_t pass(int from, size_t most) {
    if (ends_[from] < 0) return 0;
    std::vector<char> bytes(most);
    const ssize_t n = recv(ends_[from], bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (n == 0) cut();
    if (n <= 0) return 0;
    const ssize_t sent = send(ends_[1 - from], bytes.data(), size_t(n), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent != n) cut();  // some are lost, so all must be
    return size_t(n);
  }
  const Endpoint to_;
  int listener_;
  int ends_[2] = {-1, -1};
};

TEST(BrokenConnections, LoseNothingAndDoubleNothing) {
  SecretDirectory directory;
  for (const bool plain : {true, false}) {
    const unsigned number = seed(plain);
    std::mt19937 random(number);
    const auto credentials = [&] { return plain ? Credentials::plain() : with_key(directory, '7'); };
    Links::Spec spec = node();
    spec.window = 64 * 1024;
    Party server(memory_node(), credentials()), client(spec, credentials());
    server.listen();
    Cable cable(server.address());
    std::vector<std::string> echoes;
    server.on_frame = [](Link& link, uint16_t, std::span<const std::byte> payload) {
      EXPECT_TRUE(link.send(2, payload).ok()) << "each answer has room, as each request had";
    };
    Link* const link = client.dial(cable.address());
    const int frames = 500 * longer();
    int sent = 0, cuts = 0;
    const auto content = [](int i) { return std::to_string(i) + std::string(size_t(i % 7) * 700, '-'); };
    const bool done = eventually(
        [&] {
          for (int round = 0; round < 50; round++) {
            while (sent < frames && sent < int(client.frames.size()) + 10 &&
                   link->send(1, bytes_of(content(sent))).ok())
              sent++;
            client.links->wait(0);
            cable.pass_on(1 + random() % 20'000);
            server.links->wait(0);
            if (random() % 100 == 0) cable.cut(random() % 2 == 0), cuts++;
          }
          return int(client.frames.size()) >= frames || !client.endings.empty();
        },
        std::chrono::milliseconds(gcl_test::kPatienceMs) * longer());
    ASSERT_TRUE(done && client.endings.empty()) << "seed " << number << "\n" << client.log_text() << server.log_text();
    ASSERT_EQ(client.frames.size(), size_t(frames));
    for (int i = 0; i < frames; i++) {
      ASSERT_EQ(server.frames[size_t(i)], content(i)) << "seed " << number;
      ASSERT_EQ(client.frames[size_t(i)], content(i)) << "seed " << number;
    }
    EXPECT_GT(cuts, 3) << "seed " << number;
    EXPECT_GT(client.reconnections, 1) << "seed " << number;
    EXPECT_EQ(server.at_hand.size(), 1u);
  }
}

}  // namespace gcl_test

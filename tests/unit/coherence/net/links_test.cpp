// Links over sockets: frames, connections that break, and listeners.
#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>

#include "certificates.hpp"
#include "link_pair.hpp"
#include "party.hpp"

namespace gcl_test {

enum class Way { kPlain, kUnix, kKey, kCertificates };

class LinksOver : public ::testing::TestWithParam<Way> {
 protected:
  Credentials credentials() {
    if (GetParam() == Way::kKey) return with_key(directory, '5');
    if (GetParam() == Way::kCertificates) return with_certificate(directory, ours, ca);
    return Credentials::plain();
  }
  std::string listen(Party& party) {
    const std::string unix_address = "unix:" + directory.path("socket");
    party.listen(GetParam() == Way::kUnix ? unix_address : "127.0.0.1:0");
    return GetParam() == Way::kUnix ? unix_address : party.address();
  }
  SecretDirectory directory;
  const Certificate ca{"ca", nullptr}, ours{"ours", &ca};
};

TEST_P(LinksOver, FramesTravelBothWays) {
  Party server(memory_node(), credentials()), client(node(), credentials());
  const std::string at = listen(server);
  server.on_frame = [](Link& link, uint16_t type, std::span<const std::byte> payload) {
    EXPECT_TRUE(link.send(uint16_t(type + 1), payload).ok());
  };
  Link* const link = client.dial(at);
  std::vector<std::string> sent;
  for (int i = 0; i < 40; i++) {
    sent.emplace_back(size_t(i) * 2'000, char('a' + i % 26));
    ASSERT_TRUE(link->send(1, bytes_of(sent.back())).ok());
  }
  ASSERT_TRUE(while_they_work({&server, &client}, [&] { return client.frames.size() == sent.size(); }))
      << client.log_text() << server.log_text();
  EXPECT_TRUE(server.frames == sent);
  EXPECT_TRUE(client.frames == sent);
  EXPECT_TRUE(while_they_work({&server, &client}, [&] { return link->all_acknowledged(); }));
  EXPECT_TRUE(server.logged("node 3 (start 1) at ")) << server.log_text();
  EXPECT_TRUE(client.logged("memory node 0 (start 100) at " + at + ": connected")) << client.log_text();

  link->end("that is all");
  ASSERT_TRUE(while_they_work({&server, &client}, [&] { return server.endings.size() == 1; }));
  EXPECT_EQ(server.endings[0], Ending::kEndedByPeer);
  EXPECT_EQ(client.endings, std::vector<Ending>{Ending::kEndedHere});
  EXPECT_EQ(server.reasons[0], "node 3 (start 1) ended the link: that is all");
}

TEST_P(LinksOver, ManyBytesTravelThroughASmallWindow) {
  Links::Spec spec = node();
  spec.window = 128 * 1024;
  Party server(memory_node(), credentials()), client(spec, credentials());
  Link* const link = client.dial(listen(server));
  const std::string block(50'000, 'b');
  size_t sent = 0, heard = 0;
  server.on_frame = [&](Link&, uint16_t, std::span<const std::byte> payload) {
    EXPECT_EQ(payload.size(), block.size());
    heard++;
    server.frames.clear();
  };
  const auto send = [&] {
    while (sent < 200 && link->send(1, bytes_of(block)).ok()) sent++;
  };
  client.on_room = [&](Link&) { send(); };
  send();
  EXPECT_LT(sent, 3u);
  EXPECT_TRUE(while_they_work({&server, &client}, [&] { return heard == 200; })) << client.log_text();
}

TEST_P(LinksOver, AMemoryNodeThatHasStartedAnewEndsTheLink) {
  Party client(node(), credentials());
  auto server = std::make_unique<Party>(memory_node(100), credentials());
  const std::string at = listen(*server);
  client.dial(at);
  ASSERT_TRUE(while_they_work({server.get(), &client}, [&] { return client.at_hand.size() == 1; }));
  server = nullptr;
  ASSERT_TRUE(while_they_work({&client}, [&] { return client.disconnections == 1; }));
  server = std::make_unique<Party>(memory_node(101), credentials());
  server->listen(at);
  ASSERT_TRUE(while_they_work({server.get(), &client}, [&] { return client.endings.size() == 1; }))
      << client.log_text() << server->log_text();
  EXPECT_EQ(client.endings[0], Ending::kRefused);
  EXPECT_TRUE(server->logged("is refused: node 3 (start 1): memory node 0 (start 101) has started anew"))
      << server->log_text();
}

std::string name_of(const ::testing::TestParamInfo<Way>& way) {
  static constexpr const char* kNames[] = {"Plain", "Unix", "Key", "Certificates"};
  return kNames[int(way.param)];
}

INSTANTIATE_TEST_SUITE_P(, LinksOver, ::testing::Values(Way::kPlain, Way::kUnix, Way::kKey, Way::kCertificates),
                         name_of);

// --- peers that are not there

TEST(LinksTest, APeerThatIsNotThereIsALineAndThenPatienceEnds) {
  auto server = std::make_unique<Party>(memory_node(), Credentials::plain());
  server->listen();
  const std::string at = server->address();
  server = nullptr;
  Links::Spec spec = node();
  spec.times.patience_ns = 300'000'000;
  Party client(spec, Credentials::plain());
  client.dial(at);
  ASSERT_TRUE(while_they_work({&client}, [&] { return client.endings.size() == 1; }));
  EXPECT_EQ(client.endings[0], Ending::kPatience);
  ASSERT_EQ(client.lines.size(), 2u) << client.log_text();
  EXPECT_EQ(client.lines[0], "memory node 0 at " + at + ": cannot connect: Connection refused");
  EXPECT_NE(client.reasons[0].find("no connection with memory node 0 for "), std::string::npos) << client.reasons[0];
  EXPECT_NE(client.reasons[0].find("Connection refused"), std::string::npos) << client.reasons[0];
}

TEST(LinksTest, OneThatAnswersNothingIsGivenUpInTime) {
  const int silent = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const Endpoint any = endpoints_of("127.0.0.1:0").at[0];
  ASSERT_EQ(bind(silent, any.raw(), any.bytes), 0);
  ASSERT_EQ(listen(silent, 16), 0);
  Endpoint at;
  at.bytes = sizeof at.at;
  ASSERT_EQ(getsockname(silent, reinterpret_cast<sockaddr*>(&at.at), &at.bytes), 0);
  Links::Spec spec = node();
  spec.establish_ns = 100'000'000;
  Party client(spec, Credentials::plain());
  client.dial(at.name().text);
  EXPECT_TRUE(while_they_work({&client}, [&] { return client.logged("no answer for 0.1 s"); })) << client.log_text();
  close(silent);
}

// Whichever side has dialed.
TEST(LinksTest, OneThatFallsSilentIsSaidToBeSilent) {
  Links::Spec client_spec = node(), server_spec = memory_node();
  for (Links::Spec* spec : {&client_spec, &server_spec}) spec->times.silence_ns = 100'000'000;
  Party server(server_spec, Credentials::plain()), client(client_spec, Credentials::plain());
  server.listen();
  client.dial(server.address());
  const auto both = [&](auto condition) { return while_they_work({&server, &client}, condition); };
  ASSERT_TRUE(both([&] { return client.at_hand.size() == 1 && server.at_hand.size() == 1; })) << client.log_text();
  for (Party* const party : {&client, &server}) {
    const int broken = party->disconnections, whole = party->reconnections;
    EXPECT_TRUE(while_they_work({party}, [&] { return party->disconnections > broken; })) << party->log_text();
    EXPECT_TRUE(party->logged("nothing was heard of it for ")) << party->log_text();
    EXPECT_FALSE(party->logged("no answer for")) << party->log_text();
    ASSERT_TRUE(both([&] { return party->reconnections > whole && party->at_hand.size() == 1; })) << party->log_text();
  }
}

TEST(LinksTest, TheNextAddressIsTried) {
  Party server(memory_node(), Credentials::plain()), client(node(), Credentials::plain());
  server.listen();
  Endpoints both = endpoints_of("127.0.0.1:1");
  both.at[both.count++] = endpoints_of(server.address()).at[0];
  Problem problem;
  ASSERT_TRUE(client.links->dial(Who::memory_node(MemoryNodeId{0}, 0), both, &problem).ok());
  EXPECT_TRUE(while_they_work({&server, &client}, [&] { return client.at_hand.size() == 1; }));
}

TEST(LinksTest, WithoutAKeyNothingLeavesThisMachine) {
  Party party(memory_node(), Credentials::plain());
  Problem problem;
  EXPECT_EQ(party.links->listen(endpoints_of("0.0.0.0:0"), &problem).error(), Errc::kIncompatible);
  EXPECT_NE(std::string(problem.text).find("0.0.0.0:0 is not on this machine"), std::string::npos);
  const Who to = Who::memory_node(MemoryNodeId{1}, 0);
  EXPECT_EQ(party.links->dial(to, endpoints_of("192.0.2.1:1"), &problem).error(), Errc::kIncompatible);
}

TEST(LinksTest, AUserMayEndALinkAtAnyTime) {
  Party server(memory_node(), Credentials::plain());
  server.listen();
  for (int passes = 0; passes < 6; passes++) {
    Party client(node(1u + unsigned(passes)), Credentials::plain());
    Link* const link = client.dial(server.address());
    for (int i = 0; i < passes; i++) (i % 2 == 0 ? client : server).links->wait(1);
    link->end("never mind");
    ASSERT_TRUE(while_they_work({&client, &server}, [&] { return client.endings.size() == 1; }));
    EXPECT_EQ(client.endings[0], Ending::kEndedHere);
    ASSERT_TRUE(while_they_work({&client, &server}, [&] { return server.at_hand.empty(); })) << passes;
  }
}

TEST(LinksTest, AUserMayEndItWhenItHearsThatAConnectionIsReplaced) {
  struct Impatient final : LinksUser {
    void frame(Link&, uint16_t, std::span<const std::byte>) override {}
    void disconnected(Link& link) override { link.end("once was enough"); }
    void over(Link&) override { overs++; }
    void log(const char*) override {}
    int overs = 0;
  } user;
  Problem problem;
  auto server = Links::make(memory_node(), Credentials::plain(), user, &problem).take();
  ASSERT_TRUE(server->listen(endpoints_of("127.0.0.1:0"), &problem).ok());
  const Endpoint at = endpoints_of("127.0.0.1:" + std::to_string(server->port())).at[0];
  std::byte hello[kHelloBytes];
  write_hello({Who::node(NodeId{1}, 1), Who::memory_node(MemoryNodeId{0}, 0), 0, 1, 0, 4096, false}, hello);
  int fds[2];
  for (int& fd : fds) {
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    ASSERT_EQ(connect(fd, at.raw(), at.bytes), 0);
    ASSERT_EQ(send(fd, hello, sizeof hello, MSG_NOSIGNAL), ssize_t(sizeof hello));
    for (int i = 0; i < 5; i++) server->wait(1);
  }
  EXPECT_TRUE(eventually([&] { return server->wait(1), user.overs == 1; }));
  for (const int fd : fds) close(fd);
}

// --- listeners

TEST(LinksTest, AUnixSocketIsItsOwnersAlone) {
  SecretDirectory directory;
  const std::string path = directory.path("socket");
  auto first = std::make_unique<Party>(memory_node(), Credentials::plain());
  first->listen("unix:" + path);
  struct stat s;
  ASSERT_EQ(stat(path.c_str(), &s), 0);
  EXPECT_EQ(s.st_mode & 0777, 0600u);
  Party second(memory_node(), Credentials::plain());
  Problem problem;
  EXPECT_EQ(second.links->listen(endpoints_of("unix:" + path), &problem).error(), Errc::kBusy);
  first = nullptr;  // as if it had been killed: the file stays
  ASSERT_EQ(stat(path.c_str(), &s), 0);
  second.listen("unix:" + path);
}

TEST(LinksTest, AFileThatIsNoSocketStays) {
  SecretDirectory directory;
  const std::string path = directory.file("file", "precious");
  Party party(memory_node(), Credentials::plain());
  Problem problem;
  EXPECT_EQ(party.links->listen(endpoints_of("unix:" + path), &problem).error(), Errc::kBusy);
  struct stat s;
  EXPECT_EQ(stat(path.c_str(), &s), 0);
}

TEST(LinksTest, ANewerStartOfANodeTakesItsPlace) {
  Party server(memory_node(), Credentials::plain());
  server.listen();
  Party old(node(1), Credentials::plain()), young(node(2), Credentials::plain());
  old.dial(server.address());
  ASSERT_TRUE(while_they_work({&server, &old}, [&] { return old.at_hand.size() == 1; }));
  young.dial(server.address());
  ASSERT_TRUE(while_they_work({&server, &old, &young}, [&] { return old.endings.size() == 1; }));
  EXPECT_EQ(server.endings, std::vector<Ending>{Ending::kReplaced});
  EXPECT_EQ(old.reasons[0], "memory node 0 (start 100) ended the link: a newer start of it has connected");
  EXPECT_TRUE(while_they_work({&server, &young}, [&] { return young.at_hand.size() == 1; }));
  Party late(node(1), Credentials::plain());
  late.dial(server.address());
  ASSERT_TRUE(while_they_work({&server, &late}, [&] { return late.endings.size() == 1; }));
  EXPECT_EQ(late.reasons[0], "memory node 0 refuses the link: a newer start (2) was here");
}

// Of a connection that the other side has given up: the network may bring what it sent there behind what came over the
// next one.
TEST(LinksTest, AGreetingThatComesLateHarmsNothing) {
  Party server(memory_node(), Credentials::plain()), client(node(), Credentials::plain());
  server.listen();
  server.on_frame = [](Link& link, uint16_t, std::span<const std::byte>) {
    EXPECT_TRUE(link.send(2, bytes_of("heard")).ok());
  };
  Link* const link = client.dial(server.address());
  const auto goes_on = [&](size_t frames) {
    EXPECT_TRUE(link->send(1, bytes_of("hear")).ok());
    return while_they_work({&server, &client}, [&] {
      return client.frames.size() == frames && !server.at_hand.empty() && server.at_hand[0]->all_acknowledged();
    });
  };
  ASSERT_TRUE(goes_on(1)) << client.log_text() << server.log_text();
  Stranger late(server);
  std::byte bytes[kHelloBytes];
  write_hello({node().self, memory_node().self, 0, link->id(), 0, node().window, true}, bytes);
  late.say(bytes, sizeof bytes);
  EXPECT_TRUE(while_they_work({&server, &client}, [&] { return late.hung_up(); }));
  ASSERT_TRUE(server.endings.empty()) << server.log_text();
  EXPECT_TRUE(goes_on(2)) << client.log_text() << server.log_text();
  EXPECT_EQ(client.disconnections, 0);
}

TEST(LinksTest, AnotherVersionIsToldSo) {
  Party server(memory_node(), Credentials::plain());
  server.listen();
  Stranger stranger(server);
  std::byte hello[kHelloBytes + 100] = {};
  write_hello({Who::node(NodeId{1}, 1), Who::memory_node(MemoryNodeId{0}, 0), 0, 1, 0, 4096, false},
              std::span(hello).first<kHelloBytes>());
  hello[4] = std::byte{2};
  stranger.say(hello, sizeof hello);
  ASSERT_TRUE(while_they_work({&server}, [&] { return stranger.hung_up(); }));
  ASSERT_EQ(stranger.heard.size(), kWelcomeBytes);
  Welcome welcome;
  Problem problem;
  const auto* const bytes = reinterpret_cast<const std::byte*>(stranger.heard.data());
  ASSERT_TRUE(read_welcome(std::span<const std::byte, kWelcomeBytes>(bytes, kWelcomeBytes), &welcome, &problem).ok());
  EXPECT_EQ(welcome.refusal, Refusal::kVersion);
  EXPECT_STREQ(welcome.reason, "it speaks version 2 of links, this side version 1");
}

// --- the loop

TEST(LinksTest, ADescriptorOfItsUsersWakesIt) {
  struct User final : LinksUser {
    void frame(Link&, uint16_t, std::span<const std::byte>) override {}
    void over(Link&) override {}
    void log(const char*) override {}
    void ready(int fd) override {
      uint64_t count;
      EXPECT_EQ(read(fd, &count, sizeof count), ssize_t(sizeof count));
      signals += count;
    }
    uint64_t signals = 0;
  } user;
  Problem problem;
  auto links = Links::make(node(), Credentials::plain(), user, &problem).take();
  const int event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
  ASSERT_TRUE(links->watch(event, &problem).ok());
  EXPECT_FALSE(links->wait(0));
  EXPECT_EQ(links->wait_ms(), -1);
  eventfd_write(event, 3);
  EXPECT_TRUE(links->wait(-1));
  EXPECT_EQ(user.signals, 3u);
  close(event);
}

TEST(LinksTest, APeerThatDoesNotReadHoldsUpNobodyElse) {
  Party server(memory_node(), Credentials::plain()), deaf(node(1, 4), Credentials::plain()),
      client(node(1, 5), Credentials::plain());
  server.listen();
  deaf.dial(server.address());
  ASSERT_TRUE(while_they_work({&server, &deaf}, [&] { return server.at_hand.size() == 1; }));
  const std::string block(500'000, 'x');
  while (server.at_hand[0]->send(1, bytes_of(block)).ok()) server.links->wait(0);
  Link* const link = client.dial(server.address());
  ASSERT_TRUE(link->send(1, bytes_of("and I?")).ok());
  EXPECT_TRUE(while_they_work({&server, &client}, [&] { return server.frames.size() == 1; }));
  EXPECT_EQ(server.at_hand.size(), 2u);
}

}  // namespace gcl_test

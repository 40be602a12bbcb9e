// Which peer is refused before a byte of it is interpreted, how soon, and what the log says of it (tcp.key-first,
// net.no-byte-first, net.tls13-only).
#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include <algorithm>

#include "certificates.hpp"
#include "coherence/transport/net/hello.hpp"
#include "party.hpp"

namespace gcl_test {

// A TLS client of OpenSSL's, without our rules.
class TlsStranger {
 public:
  TlsStranger(const Party& party, int version, const Certificate* own) : stranger_(party) {
    context_ = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_max_proto_version(context_, version);
    if (own) {
      SSL_CTX_use_certificate(context_, own->x509);
      SSL_CTX_use_PrivateKey(context_, own->key);
    }
    ssl_ = SSL_new(context_);
    SSL_set_fd(ssl_, stranger_.fd);
    SSL_set_connect_state(ssl_);
  }
  ~TlsStranger() {
    SSL_free(ssl_);
    SSL_CTX_free(context_);
  }
  TlsStranger(const TlsStranger&) = delete;
  // True: it was refused.  A client of TLS 1.3 hears so only behind its own handshake.
  bool refused() {
    char byte;
    const int result = SSL_read(ssl_, &byte, 1);
    const int error = SSL_get_error(ssl_, result);
    return result <= 0 && error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE;
  }

 private:
  Stranger stranger_;
  SSL_CTX* context_;
  SSL* ssl_;
};

// A port of 127.0.0.1 that nobody is served at but by the test.
class Port {
 public:
  Port() : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    const Endpoint any = endpoints_of("127.0.0.1:0").at[0];
    EXPECT_EQ(bind(listener_, any.raw(), any.bytes), 0);
    EXPECT_EQ(listen(listener_, 1), 0);
  }
  ~Port() {
    close(listener_);
    if (fd >= 0) close(fd);
  }
  Port(const Port&) = delete;
  std::string address() const {
    Endpoint at;
    at.bytes = sizeof at.at;
    EXPECT_EQ(getsockname(listener_, reinterpret_cast<sockaddr*>(&at.at), &at.bytes), 0);
    return at.name().text;
  }
  // Whether a peer is connected: the first that was.
  bool taken() {
    if (fd < 0) fd = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    return fd >= 0;
  }
  int fd = -1;

 private:
  const int listener_;
};

// A server of OpenSSL's.
class TlsServer {
 public:
  explicit TlsServer(const Certificate& own) : context_(SSL_CTX_new(TLS_server_method())), ssl_(nullptr) {
    SSL_CTX_use_certificate(context_, own.x509);
    SSL_CTX_use_PrivateKey(context_, own.key);
  }
  ~TlsServer() {
    SSL_free(ssl_);
    SSL_CTX_free(context_);
  }
  TlsServer(const TlsServer&) = delete;
  std::string address() const { return port_.address(); }
  void work() {
    if (!port_.taken()) return;
    if (!ssl_) {
      ssl_ = SSL_new(context_);
      SSL_set_fd(ssl_, port_.fd);
    }
    SSL_accept(ssl_);
  }

 private:
  Port port_;
  SSL_CTX* const context_;
  SSL* ssl_;
};

// Passes bytes on between a client and a party, and keeps what the client said.
class Recorder {
 public:
  explicit Recorder(const Party& party) : server_(party) {}
  std::string address() const { return port_.address(); }
  void pass_on() {
    if (!port_.taken()) return;
    char bytes[4096];
    for (ssize_t n; (n = recv(port_.fd, bytes, sizeof bytes, 0)) > 0; said.append(bytes, size_t(n)))
      server_.say(bytes, size_t(n));
    server_.hung_up();
    EXPECT_EQ(send(port_.fd, server_.heard.data(), server_.heard.size(), 0), ssize_t(server_.heard.size()));
    server_.heard.clear();
  }
  std::string said;

 private:
  Stranger server_;
  Port port_;
};

class Strangers : public ::testing::Test {
 protected:
  // The parties never become friends; both say why.
  void expect_refused(Credentials at_server, Credentials at_client, const std::string& server_says,
                      const std::string& client_says) {
    Party server(memory_node(), std::move(at_server)), client(node(), std::move(at_client));
    server.listen();
    ASSERT_TRUE(client.dial(server.address())->send(1, std::as_bytes(std::span("secret"))).ok());
    EXPECT_TRUE(while_they_work({&server, &client},
                                [&] {
                                  return server.logged("127.0.0.1:") && server.logged(" is refused: " + server_says) &&
                                         client.logged("memory node 0 at " + server.address() + ": " + client_says);
                                }))
        << "server:\n"
        << server.log_text() << "client:\n"
        << client.log_text();
    EXPECT_TRUE(server.at_hand.empty());
    EXPECT_TRUE(client.at_hand.empty());
    EXPECT_TRUE(server.frames.empty());
  }
  void expect_tls_refused(Party& server, int version, const Certificate* own, const std::string& server_says) {
    TlsStranger stranger(server, version, own);
    EXPECT_TRUE(while_they_work({&server}, [&] { return stranger.refused() && server.logged(server_says); }))
        << server.log_text();
    EXPECT_TRUE(server.at_hand.empty());
  }

  SecretDirectory directory;
  const Certificate ca{"ca", nullptr}, ours{"ours", &ca};
};

TEST_F(Strangers, WithAnotherKey) {
  expect_refused(with_key(directory, '1'), with_key(directory, '2'), "its key is another than the cluster's",
                 "it refuses this side's key");
}

TEST_F(Strangers, WithoutTls) {
  expect_refused(with_key(directory, '1'), Credentials::plain(), "it does not speak TLS", "it closed the connection");
}

TEST_F(Strangers, WithTlsWhereItIsPlain) {
  expect_refused(Credentials::plain(), with_key(directory, '1'), "it does not greet as one of us does",
                 "the connection broke");
}

TEST_F(Strangers, WithACertificateWhereThereIsAKey) {
  expect_refused(with_key(directory, '1'), with_certificate(directory, ours, ca), "it does not show that it has a key",
                 "it refuses this side");
}

TEST_F(Strangers, WithAKeyWhereThereAreCertificates) {
  expect_refused(with_certificate(directory, ours, ca), with_key(directory, '1'), "", "the TLS handshake failed");
}

TEST_F(Strangers, WithACertificateOfAnotherCa) {
  const Certificate other_ca("other", nullptr), other("other", &other_ca);
  expect_refused(with_certificate(directory, ours, ca), with_certificate(directory, other, other_ca), "it refuses",
                 "its certificate is refused: ");
}

TEST_F(Strangers, ThatAreDialedAndWhoseCertificateHasExpired) {
  const Certificate expired("expired", &ca, -7200, -3600);
  TlsServer server(expired);
  Party client(node(), with_certificate(directory, ours, ca));
  client.dial(server.address());
  EXPECT_TRUE(while_they_work({&client}, [&] {
    server.work();
    return client.logged("its certificate is refused: certificate has expired");
  })) << client.log_text();
  EXPECT_TRUE(client.at_hand.empty());
}

TEST_F(Strangers, WithCertificatesThatProveNothing) {
  Party server(memory_node(), with_certificate(directory, ours, ca));
  server.listen();
  const Certificate expired("expired", &ca, -7200, -3600), itself("itself", nullptr);
  expect_tls_refused(server, TLS1_3_VERSION, &expired, "its certificate is refused: certificate has expired");
  expect_tls_refused(server, TLS1_3_VERSION, &itself, "its certificate is refused: self-signed certificate");
  expect_tls_refused(server, TLS1_3_VERSION, nullptr, "it shows no certificate");
}

TEST_F(Strangers, WithOlderTls) {
  Party with_certificates(memory_node(), with_certificate(directory, ours, ca));
  with_certificates.listen();
  expect_tls_refused(with_certificates, TLS1_2_VERSION, &ours, "it does not speak TLS 1.3");
  Party server(memory_node(), with_key(directory, '1'));
  server.listen();
  expect_tls_refused(server, TLS1_2_VERSION, nullptr, "it does not speak TLS 1.3");
  expect_tls_refused(server, TLS1_3_VERSION, nullptr, "it does not show that it has a key");
}

TEST_F(Strangers, ThatPlayAFriendsBytesAgain) {
  Party server(memory_node(), with_key(directory, '1')), client(node(), with_key(directory, '1'));
  server.listen();
  std::string said;
  {
    Recorder recorder(server);
    ASSERT_TRUE(client.dial(recorder.address())->send(1, std::as_bytes(std::span("pay"))).ok());
    ASSERT_TRUE(while_they_work({&server, &client}, [&] {
      recorder.pass_on();
      return server.frames.size() == 1;
    })) << server.log_text();
    said = recorder.said;
  }
  Stranger stranger(server);
  stranger.say(said.data(), said.size());
  EXPECT_TRUE(while_they_work({&server}, [&] { return stranger.hung_up() && server.logged(" is refused: "); }));
  EXPECT_EQ(server.frames.size(), 1u);
  EXPECT_EQ(server.at_hand.size(), 1u);
}

// --- in their time

TEST_F(Strangers, ThatSayNothingAreSentAway) {
  for (const bool half : {false, true}) {
    Links::Spec spec = memory_node();
    spec.establish_ns = 200'000'000;
    Party server(spec, with_key(directory, '1'));
    server.listen();
    std::string hello;
    if (half) {  // of a handshake
      Party client(node(), with_key(directory, '1'));
      Recorder recorder(server);
      client.dial(recorder.address());
      ASSERT_TRUE(while_they_work({&server, &client}, [&] {
        recorder.pass_on();
        return !recorder.said.empty();
      }));
      hello = recorder.said.substr(0, recorder.said.size() / 2);
    }
    Stranger stranger(server);
    if (half) stranger.say(hello.data(), hello.size());
    EXPECT_TRUE(while_they_work({&server}, [&] { return stranger.hung_up(); }));
    EXPECT_TRUE(server.logged("is refused: it did not say who it is for 0.2 s")) << server.log_text();
  }
}

TEST_F(Strangers, ThatAreManyAreSentAwayAndAFriendIsLetIn) {
  Links::Spec spec = memory_node();
  spec.half_open_max = 8;
  spec.establish_ns = 60'000'000'000;
  Party server(spec, with_key(directory, '1')), client(node(), with_key(directory, '1'));
  server.listen();
  std::vector<std::unique_ptr<Stranger>> strangers;
  for (int i = 0; i < 50; i++) {
    strangers.push_back(std::make_unique<Stranger>(server));
    server.links->wait(0);
  }
  const auto left = [&] {
    return std::count_if(strangers.begin(), strangers.end(), [](const auto& each) { return !each->hung_up(); });
  };
  EXPECT_TRUE(while_they_work({&server}, [&] { return left() <= 8; })) << left();
  EXPECT_LE(server.lines.size(), 25u) << "strangers do not fill the log";
  client.dial(server.address());
  EXPECT_TRUE(while_they_work({&server, &client}, [&] { return client.at_hand.size() == 1; })) << client.log_text();
}

TEST_F(Strangers, WhoseHandshakeHasNoEndAreSentAway) {
  Party server(memory_node(), with_key(directory, '1'));
  server.listen();
  Stranger stranger(server);
  // Records that say of themselves that they are pieces of one handshake message of 16 MB.
  std::string record("\x16\x03\x01\x40\x00", 5);
  record += std::string("\x01\xff\xff\xff", 4) + std::string(0x4000 - 4, 'x');
  EXPECT_TRUE(while_they_work({&server}, [&] {
    (void)!send(stranger.fd, record.data(), record.size(), MSG_NOSIGNAL);
    return stranger.hung_up();
  }));
  EXPECT_TRUE(server.logged(" is refused: ")) << server.log_text();
}

}  // namespace gcl_test

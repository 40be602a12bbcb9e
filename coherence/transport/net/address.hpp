// Where somebody is reached: "host:port", "[v6]:port" or "unix:/path".
//
// net.names-looked-up-first: resolve() asks the system's resolver and may take seconds.  Loops that wait for nothing
// but their sockets call it before they begin, and use what it found for every later connection.
//
//   Result<Address> address = Address::parse("memory-1:5555", problem);
//   if (!address) return address.error();
//   Result<Endpoints> endpoints = address->resolve(problem);
#pragma once

#include <sys/socket.h>

#include <cstdint>
#include <string_view>

#include "coherence/base/problem.hpp"
#include "coherence/base/result.hpp"

namespace coherence::net {

// One address as the system knows it.
struct Endpoint {
  sockaddr_storage at = {};
  socklen_t bytes = 0;

  int family() const noexcept { return at.ss_family; }
  const sockaddr* raw() const noexcept { return reinterpret_cast<const sockaddr*>(&at); }
  bool local() const noexcept;                           // loopback or unix: bytes never leave this machine
  bool same_host(const Endpoint& other) const noexcept;  // ports aside; all of unix are one host
  bool any() const noexcept;                             // every address of this machine; nobody can dial it
  uint16_t port() const noexcept;                        // 0: unix
  void set_port(uint16_t) noexcept;                      // nothing: unix
  struct Name {
    char text[140];
  };
  Name name() const noexcept;  // "127.0.0.1:5555", "[::1]:5555", "unix:/path"; "unix" for one without a path
};

// What a name stands for, in the order in which they are to be tried.
struct Endpoints {
  static constexpr int kMax = 8;
  Endpoint at[kMax];
  int count = 0;
  bool local() const noexcept;  // all of them are
};

class Address {
 public:
  // kIncompatible: it is none; the problem says why.
  static Result<Address> parse(std::string_view text, Problem*);
  const char* text() const noexcept { return text_; }
  bool is_unix() const noexcept { return is_unix_; }
  // kNotFound: the resolver knows no such name.
  Result<Endpoints> resolve(Problem*) const;

 private:
  char text_[280] = "";
  char host_[256] = "";  // or the path
  uint16_t port_ = 0;
  bool is_unix_ = false;
};

}  // namespace coherence::net

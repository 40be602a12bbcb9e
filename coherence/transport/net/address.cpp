#include "coherence/transport/net/address.hpp"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/un.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdio>
#include <cstring>

#include "coherence/transport/net/quoted.hpp"

namespace coherence::net {
namespace {

constexpr std::string_view kUnix = "unix:";

template <class Raw>
Raw as(const Endpoint& endpoint) noexcept {
  Raw raw;
  memcpy(&raw, &endpoint.at, sizeof raw);
  return raw;
}

bool loopback(const in_addr& address) noexcept { return ntohl(address.s_addr) >> 24 == 127; }

bool loopback(const in6_addr& address) noexcept {
  if (!IN6_IS_ADDR_V4MAPPED(&address)) return IN6_IS_ADDR_LOOPBACK(&address);
  in_addr mapped;
  memcpy(&mapped, address.s6_addr + 12, sizeof mapped);
  return loopback(mapped);
}

bool copy(std::string_view from, char* to, size_t room) noexcept {
  if (from.empty() || from.size() >= room || from.find('\0') != std::string_view::npos) return false;
  memcpy(to, from.data(), from.size());
  to[from.size()] = 0;
  return true;
}

Endpoint of_path(const char* path) noexcept {
  Endpoint endpoint;
  sockaddr_un raw = {};
  raw.sun_family = AF_UNIX;
  static_assert(sizeof raw.sun_path <= sizeof raw);
  memcpy(raw.sun_path, path, strnlen(path, sizeof raw.sun_path - 1));
  memcpy(&endpoint.at, &raw, sizeof raw);
  endpoint.bytes = socklen_t(offsetof(sockaddr_un, sun_path) + strlen(raw.sun_path) + 1);
  return endpoint;
}

}  // namespace

bool Endpoint::local() const noexcept {
  switch (family()) {
    case AF_UNIX:
      return true;
    case AF_INET:
      return loopback(as<sockaddr_in>(*this).sin_addr);
    case AF_INET6:
      return loopback(as<sockaddr_in6>(*this).sin6_addr);
  }
  return false;
}

bool Endpoint::same_host(const Endpoint& other) const noexcept {
  if (family() != other.family()) return false;
  if (family() == AF_INET) return as<sockaddr_in>(*this).sin_addr.s_addr == as<sockaddr_in>(other).sin_addr.s_addr;
  if (family() != AF_INET6) return true;
  const auto a = as<sockaddr_in6>(*this).sin6_addr, b = as<sockaddr_in6>(other).sin6_addr;
  const size_t network = IN6_IS_ADDR_V4MAPPED(&a) ? sizeof a : 8;  // a host with one address of a /64 has them all
  return memcmp(&a, &b, network) == 0;
}

bool Endpoint::any() const noexcept {
  if (family() == AF_INET) return reinterpret_cast<const sockaddr_in&>(at).sin_addr.s_addr == htonl(INADDR_ANY);
  return family() == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&reinterpret_cast<const sockaddr_in6&>(at).sin6_addr);
}

void Endpoint::set_port(uint16_t port) noexcept {
  if (family() == AF_INET) reinterpret_cast<sockaddr_in&>(at).sin_port = htons(port);
  if (family() == AF_INET6) reinterpret_cast<sockaddr_in6&>(at).sin6_port = htons(port);
}

uint16_t Endpoint::port() const noexcept {
  if (family() == AF_INET) return ntohs(as<sockaddr_in>(*this).sin_port);
  if (family() == AF_INET6) return ntohs(as<sockaddr_in6>(*this).sin6_port);
  return 0;
}

Endpoint::Name Endpoint::name() const noexcept {
  Name name;
  char host[INET6_ADDRSTRLEN] = "";
  if (family() == AF_INET) {
    const auto raw = as<sockaddr_in>(*this);
    inet_ntop(AF_INET, &raw.sin_addr, host, sizeof host);
    snprintf(name.text, sizeof name.text, "%s:%u", host, unsigned(port()));
  } else if (family() == AF_INET6) {
    const auto raw = as<sockaddr_in6>(*this);
    inet_ntop(AF_INET6, &raw.sin6_addr, host, sizeof host);
    snprintf(name.text, sizeof name.text, "[%s]:%u", host, unsigned(port()));
  } else {
    const auto raw = as<sockaddr_un>(*this);
    const size_t room = bytes > offsetof(sockaddr_un, sun_path) ? bytes - offsetof(sockaddr_un, sun_path) : 0;
    const std::string_view path(raw.sun_path, strnlen(raw.sun_path, std::min(room, sizeof raw.sun_path)));
    snprintf(name.text, sizeof name.text, path.empty() ? "unix" : "unix:%.120s", Quoted(path).text);
  }
  return name;
}

bool Endpoints::local() const noexcept {
  for (int i = 0; i < count; i++)
    if (!at[i].local()) return false;
  return true;
}

Result<Address> Address::parse(std::string_view text, Problem* problem) {
  Address address;
  const Quoted quoted(text);
  const auto refuse = [&](const char* why) {
    return problem->set(Errc::kIncompatible, "\"%s\" is no address (host:port, [v6]:port or unix:/path): %s",
                        quoted.text, why);
  };
  if (!copy(text, address.text_, sizeof address.text_))
    return refuse(text.empty() ? "it is empty" : "it is too long, or has a zero byte");
  if (text.substr(0, kUnix.size()) == kUnix) {
    const std::string_view path = text.substr(kUnix.size());
    address.is_unix_ = true;
    if (path.empty() || path[0] != '/') return refuse("the path does not begin with /");
    if (!copy(path, address.host_, sizeof sockaddr_un::sun_path)) return refuse("the path has more than 107 bytes");
    return address;
  }
  const size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return refuse("the port is missing");
  std::string_view host = text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
    if (host.find(':') == std::string_view::npos) return refuse("what is in brackets is no IPv6 address");
  } else if (host.find(':') != std::string_view::npos) {
    return refuse("an IPv6 address is written in brackets");
  }
  for (const char c : host)
    if (c <= ' ' || c > '~' || c == '[' || c == ']' || c == '/') return refuse("no host has such a name");
  if (!copy(host, address.host_, sizeof address.host_)) return refuse("the host is missing, or too long");
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), address.port_);
  if (port.empty() || error != std::errc() || end != port.data() + port.size())
    return refuse("the port is no number from 0 to 65535");
  return address;
}

Result<Endpoints> Address::resolve(Problem* problem) const {
  Endpoints found;
  if (is_unix_) {
    found.at[found.count++] = of_path(host_);
    return found;
  }
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  char service[8];
  snprintf(service, sizeof service, "%u", unsigned(port_));
  addrinfo* list = nullptr;
  if (const int error = getaddrinfo(host_, service, &hints, &list); error != 0)
    return problem->set(Errc::kNotFound, "the address %s is not known: %s", text_, gai_strerror(error));
  for (const addrinfo* each = list; each && found.count < Endpoints::kMax; each = each->ai_next) {
    if (each->ai_addrlen > sizeof(sockaddr_storage)) continue;
    Endpoint& endpoint = found.at[found.count++];
    memcpy(&endpoint.at, each->ai_addr, each->ai_addrlen);
    endpoint.bytes = each->ai_addrlen;
  }
  freeaddrinfo(list);
  if (found.count == 0) return problem->set(Errc::kNotFound, "the address %s has no endpoint", text_);
  return found;
}

}  // namespace coherence::net

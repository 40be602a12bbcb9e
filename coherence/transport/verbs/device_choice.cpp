#include "coherence/transport/verbs/device_choice.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <cstring>
#include <tuple>
#include <vector>

#include "coherence/base/text.hpp"

namespace coherence::verbs {
namespace {

in6_addr address_of(const PortGid& one) {
  in6_addr address;
  memcpy(&address, one.gid, sizeof address);
  return address;
}

// As a GID has it: IPv4 addresses are mapped.
bool is_address(const PortGid& one, const net::Endpoint& endpoint) {
  const in6_addr gid = address_of(one);
  if (endpoint.family() == AF_INET) {
    sockaddr_in at;
    memcpy(&at, &endpoint.at, sizeof at);
    return IN6_IS_ADDR_V4MAPPED(&gid) && memcmp(one.gid + 12, &at.sin_addr, sizeof at.sin_addr) == 0;
  }
  if (endpoint.family() != AF_INET6) return false;
  sockaddr_in6 at;
  memcpy(&at, &endpoint.at, sizeof at);
  return memcmp(one.gid, &at.sin6_addr, sizeof at.sin6_addr) == 0;
}

// The best first: what is routed before what is not, v2 before v1, IPv4 before link-local.
auto rank(const PortGid& one) {
  const in6_addr gid = address_of(one);
  return std::tuple(!one.infiniband && !one.v2, bool(IN6_IS_ADDR_LINKLOCAL(&gid)), !IN6_IS_ADDR_V4MAPPED(&gid),
                    one.index);
}

bool same_port(const PortGid& a, const PortGid& b) { return a.device == b.device && a.port == b.port; }

std::string names_of(std::span<const PortGid> all) {
  std::vector<std::string> names;
  for (const PortGid& one : all)
    if (std::find(names.begin(), names.end(), one.device) == names.end()) names.push_back(one.device);
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace

Result<size_t> choose_gid(std::span<const PortGid> all, const DeviceSettings& settings, const net::Endpoint& near,
                          Problem* problem) {
  if (all.empty())
    return problem->set(Errc::kNotFound, "this machine has no RDMA device that this process sees (/dev/infiniband)");
  std::vector<size_t> fit;
  bool some_inactive = false;
  for (size_t i = 0; i < all.size(); i++) {
    const PortGid& one = all[i];
    if (!settings.device.empty() && one.device != settings.device) continue;
    if (settings.port != 0 && one.port != settings.port) continue;
    if (settings.gid_index >= 0 && one.index != settings.gid_index) continue;
    some_inactive |= !one.active;
    if (one.active) fit.push_back(i);
  }
  if (fit.empty()) {
    Text wanted;
    wanted.add("%s", settings.device.empty() ? "any device" : settings.device.c_str());
    if (settings.port != 0) wanted.add(", port %d", settings.port);
    if (settings.gid_index >= 0) wanted.add(", GID %d", settings.gid_index);
    if (some_inactive)
      return problem->set(Errc::kNotFound, "no RDMA port is active (%s): is its network up?", wanted.c_str());
    return problem->set(Errc::kNotFound, "there is no such RDMA port or GID: %s; there are %s", wanted.c_str(),
                        names_of(all).c_str());
  }
  const auto better = [&](size_t a, size_t b) { return rank(all[a]) < rank(all[b]); };
  std::vector<size_t> of_address;
  for (const size_t i : fit)
    if (is_address(all[i], near)) of_address.push_back(i);
  if (!of_address.empty()) return *std::min_element(of_address.begin(), of_address.end(), better);
  for (const size_t i : fit)
    if (!same_port(all[i], all[fit.front()]))
      return problem->set(Errc::kNotFound,
                          "no RDMA port has the address %s, and there are several ports (%s): a setting has to say "
                          "which one is meant",
                          near.name().text, names_of(all).c_str());
  return *std::min_element(fit.begin(), fit.end(), better);
}

GidText::GidText(const uint8_t (&gid)[16]) noexcept {
  in6_addr address;
  memcpy(&address, gid, sizeof address);
  if (IN6_IS_ADDR_V4MAPPED(&address))
    inet_ntop(AF_INET, gid + 12, text, sizeof text);
  else
    inet_ntop(AF_INET6, gid, text, sizeof text);
}

}  // namespace coherence::verbs

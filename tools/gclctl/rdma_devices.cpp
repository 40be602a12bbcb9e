#include "tools/gclctl/rdma_devices.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace gclctl {
namespace {

namespace fs = std::filesystem;
constexpr const char* kDevices = "/sys/class/infiniband";
constexpr const char* kCharacterDevices = "/sys/class/infiniband_verbs";
constexpr size_t kEntriesMax = 4096;  // of a directory; more GIDs than that no port has

std::string line_of(const fs::path& file) {
  std::ifstream in(file);
  std::string line;
  std::getline(in, line);
  return line;
}

std::vector<std::string> names_in(const fs::path& directory) {
  std::vector<std::string> names;
  std::error_code none;
  for (auto it = fs::directory_iterator(directory, none); it != fs::directory_iterator() && names.size() < kEntriesMax;
       it.increment(none))
    names.push_back(it->path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

// As /sys writes a GID: an IPv4 address is one of IPv6 there.
std::string gid_of(const coherence::net::Endpoint& at) {
  in6_addr address = {};
  if (at.family() == AF_INET6) {
    address = reinterpret_cast<const sockaddr_in6*>(at.raw())->sin6_addr;
  } else if (at.family() == AF_INET) {
    address.s6_addr[10] = address.s6_addr[11] = 0xff;
    memcpy(&address.s6_addr[12], &reinterpret_cast<const sockaddr_in*>(at.raw())->sin_addr, 4);
  } else {
    return "";
  }
  std::string text;
  for (int i = 0; i < 16; i += 2)
    text += fmt::format("{}{:02x}{:02x}", i > 0 ? ":" : "", address.s6_addr[i], address.s6_addr[i + 1]);
  return text;
}

std::string character_device(const std::string& device) {
  for (const std::string& name : names_in(kCharacterDevices))
    if (line_of(fs::path(kCharacterDevices) / name / "ibdev") == device) return "/dev/infiniband/" + name;
  return "";
}

}  // namespace

bool has_rdma_devices() { return !names_in(kDevices).empty(); }

std::vector<RdmaPort> rdma_ports_of(const coherence::net::Endpoint& at) {
  std::vector<RdmaPort> found;
  const std::string gid = gid_of(at);
  for (const std::string& device : names_in(kDevices))
    for (const std::string& port : names_in(fs::path(kDevices) / device / "ports")) {
      const fs::path of_port = fs::path(kDevices) / device / "ports" / port;
      for (const std::string& index : names_in(of_port / "gids")) {
        if (gid.empty() || line_of(of_port / "gids" / index) != gid) continue;
        const std::string state = line_of(of_port / "state"), file = character_device(device);  // "4: ACTIVE"
        found.push_back({.device = device,
                         .port = atoi(port.c_str()),
                         .gid = atoi(index.c_str()),
                         .state = state.substr(std::min(state.size(), state.find(' ') + 1)),
                         .file = file,
                         .usable = !file.empty() && access(file.c_str(), R_OK | W_OK) == 0});
      }
    }
  return found;
}

}  // namespace gclctl

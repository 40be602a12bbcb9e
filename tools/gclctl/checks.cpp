#include "tools/gclctl/checks.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/statvfs.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>

#include "tools/gclctl/failure.hpp"
#include "tools/gclctl/process.hpp"

namespace gclctl {
namespace {

bool somebody_listens(int port) {
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(uint16_t(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  bool taken = bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 && errno == EADDRINUSE;
  close(fd);
  return taken;
}

bool somebody_listens(const fs::path& path) {
  int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  bool taken = connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  close(fd);
  return taken;
}

uint64_t memory_available() {
  std::ifstream in("/proc/meminfo");
  std::string name, unit;
  uint64_t value = 0;
  while (in >> name >> value && std::getline(in, unit))
    if (name == "MemAvailable:") return value << 10;
  return 0;
}

}  // namespace

void check_port_free(const Cluster& cluster, int k) {
  int port = cluster.port_of(k);
  if (somebody_listens(port) || somebody_listens(cluster.socket(k))) fail("port {} (primary {}) is in use", port, k);
}

void check_memory(const fs::path& tmpfs, uint64_t bytes, const std::string& what, const std::string& or_else) {
  struct statvfs there;
  if (statvfs(tmpfs.c_str(), &there) != 0) fail("{}: {}", tmpfs.string(), strerror(errno));
  if (uint64_t room = uint64_t(there.f_bavail) * there.f_frsize; bytes > room)
    fail("{} MB of shared memory are needed for {}, but {} has {} MB free: give it more (docker run --shm-size), or {}",
         megabytes(bytes), what, tmpfs.string(), room >> 20, or_else);
  if (uint64_t room = memory_available(); bytes > room)
    fail("{} MB of memory are needed for {}, but {} MB are available: {}", megabytes(bytes), what, room >> 20, or_else);
}

void check_memory(const Cluster& cluster, int primaries, uint64_t pool_bytes) {
  // Beside its frames a primary keeps a line per frame and message slots there; a sixteenth is ample.
  const uint64_t frames = cluster.cache_bytes + cluster.cache_bytes / 16 + (16 << 20);
  check_memory(cluster.memory_dir, uint64_t(primaries) * frames + pool_bytes,
               fmt::format("the pool and {} caches", primaries), "choose a smaller --pool-size or --cache-size");
}

void check_reachable(const std::string& account, const fs::path& path) {
  fs::path blocked;
  for (fs::path at = path; blocked.empty() && at != at.root_path(); at = at.parent_path()) {
    if (!fs::exists(at)) continue;
    if (run_as(account, [&] { return access(at.c_str(), R_OK | X_OK) == 0 ? 0 : 1; }) != 0) blocked = at;
  }
  if (!blocked.empty())
    fail(
        "the account \"{}\", which will run the servers, may not enter {}: choose a place it can read, such as "
        "/var/lib/postgresql/NAME",
        account, blocked.string());
}

}  // namespace gclctl

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

uint64_t megabytes(uint64_t bytes) { return (bytes + (1 << 20) - 1) >> 20; }

}  // namespace

void check_port_free(const Cluster& cluster, int k) {
  int port = cluster.port_of(k);
  if (somebody_listens(port) || somebody_listens(cluster.socket(k))) fail("port {} (primary {}) is in use", port, k);
}

void check_memory(const Cluster& cluster, int primaries, bool with_pool) {
  // Beside its frames a primary keeps a line per frame and message slots there; a sixteenth is ample.
  uint64_t frames = cluster.cache_bytes + cluster.cache_bytes / 16 + (16 << 20);
  uint64_t wanted = uint64_t(primaries) * frames + (with_pool ? cluster.pool_bytes : 0);
  struct statvfs tmpfs;
  if (statvfs(cluster.memory_dir.c_str(), &tmpfs) != 0) fail("{}: {}", cluster.memory_dir.string(), strerror(errno));
  if (uint64_t room = uint64_t(tmpfs.f_bavail) * tmpfs.f_frsize; wanted > room)
    fail(
        "the pool and {} caches need {} MB of shared memory, but {} has {} MB free: give it more (docker run "
        "--shm-size), "
        "or choose a smaller --pool-size or --cache-size",
        primaries, megabytes(wanted), cluster.memory_dir.string(), room >> 20);
  if (uint64_t room = memory_available(); wanted > room)
    fail(
        "the pool and {} caches need {} MB of memory, but {} MB are available: choose a smaller --pool-size or "
        "--cache-size",
        primaries, megabytes(wanted), room >> 20);
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

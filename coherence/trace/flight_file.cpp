#include "coherence/trace/flight_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace coherence {
namespace {

struct Descriptor {
  explicit Descriptor(int opened) : fd(opened) {}
  ~Descriptor() {
    if (fd >= 0) close(fd);
  }
  Descriptor(const Descriptor&) = delete;
  const int fd;
};

bool take_memory(int fd, uint64_t at, uint64_t bytes) noexcept {
  int error;
  do error = posix_fallocate(fd, off_t(at), off_t(bytes));
  while (error == EINTR);
  return error == 0;
}

}  // namespace

void flight_path(const char* pool, NodeId node, uint64_t incarnation, char* out, size_t bytes) noexcept {
  snprintf(out, bytes, "%s.node%u.%llu.flight", pool, node.value, static_cast<unsigned long long>(incarnation));
}

FlightFile::~FlightFile() {
  if (base_) munmap(base_, bytes_);
}

void FlightFile::create(const char* path, NodeId node, uint64_t incarnation, uint32_t sessions) noexcept {
  unlink(path);  // of a pool that was here before
  const Descriptor file(open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (file.fd < 0 || snprintf(path_, sizeof path_, "%s", path) >= int(sizeof path_)) return;
  bytes_ = flight_ring_at(sessions);
  if (!take_memory(file.fd, 0, kFlightHeaderBytes) || ftruncate(file.fd, off_t(bytes_)) != 0) return;
  void* mapped = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file.fd, 0);
  if (mapped == MAP_FAILED) return;
  base_ = static_cast<std::byte*>(mapped);
  sessions_ = sessions;
  *static_cast<FlightHeader*>(mapped) = {.magic = kFlightMagic,
                                         .incarnation = incarnation,
                                         .sessions = sessions,
                                         .event_bytes = sizeof(FlightEvent),
                                         .events = kFlightEvents,
                                         .node = node.value};
}

FlightRing* FlightFile::ring(SessionId session) noexcept {
  if (base_ == nullptr || session.value >= sessions_) return nullptr;
  const Descriptor file(open(path_, O_RDWR | O_CLOEXEC));
  const uint64_t at = flight_ring_at(session.value);
  if (file.fd < 0 || !take_memory(file.fd, at, sizeof(FlightRing))) return nullptr;
  return reinterpret_cast<FlightRing*>(base_ + at);
}

}  // namespace coherence

#include "coherence/trace/flight_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace coherence {
namespace {

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
  if (fd_ >= 0) close(fd_);
}

void FlightFile::create(const char* path, NodeId node, uint64_t incarnation, uint32_t sessions) noexcept {
  fd_ = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd_ < 0) return;
  bytes_ = flight_ring_at(sessions);
  if (!take_memory(fd_, 0, kFlightHeaderBytes) || ftruncate(fd_, off_t(bytes_)) != 0) return;
  void* mapped = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
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
  const uint64_t at = flight_ring_at(session.value);
  return take_memory(fd_, at, sizeof(FlightRing)) ? reinterpret_cast<FlightRing*>(base_ + at) : nullptr;
}

}  // namespace coherence

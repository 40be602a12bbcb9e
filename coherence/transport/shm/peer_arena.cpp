#include "coherence/transport/shm/peer_arena.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <new>

#include "coherence/base/verify.hpp"

namespace coherence {

PeerArena* PeerArena::map(const Pool& pool, NodeId node, uint64_t incarnation) noexcept {
  std::unique_ptr<PeerArena> arena(new (std::nothrow) PeerArena);
  if (!arena) return nullptr;
  char path[600];
  arena_path(pool, node, incarnation, path, sizeof path);
  int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0) return nullptr;
  struct stat s;
  void* base = MAP_FAILED;
  if (fstat(fd, &s) == 0 && uint64_t(s.st_size) >= sizeof(ArenaHeader))
    base = mmap(nullptr, size_t(s.st_size), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (base == MAP_FAILED) return nullptr;
  arena->base_ = static_cast<std::byte*>(base);
  arena->bytes_ = uint64_t(s.st_size);
  arena->header_ = static_cast<ArenaHeader*>(base);
  arena->incarnation_ = incarnation;
  const bool right = arena->header_->magic == kArenaMagic && arena->header_->incarnation == incarnation &&
                     arena->header_->layout.bytes <= arena->bytes_;
  return right ? arena.release() : nullptr;
}

PeerArena* PeerArena::alias(ArenaHeader& mapped) {
  auto* arena = new PeerArena;
  arena->base_ = reinterpret_cast<std::byte*>(&mapped);
  arena->incarnation_ = mapped.incarnation;
  arena->header_ = &mapped;
  return arena;
}

PeerArena::~PeerArena() {
  if (bytes_ > 0) munmap(base_, bytes_);
}

RequestSlot* PeerArena::slot(uint32_t index) {
  const ArenaLayout& l = header_->layout;
  if (index / kSlotsPerSession >= l.sessions_max) return nullptr;
  auto* sessions = reinterpret_cast<SessionSlot*>(base_ + l.sessions_at);
  return &sessions[index / kSlotsPerSession].slot[index % kSlotsPerSession];
}

std::byte* PeerArena::frame(uint32_t line) {
  const ArenaLayout& l = header_->layout;
  VERIFY(line < l.frames);
  return base_ + l.frames_at + uint64_t(line) * kPageSize;
}

std::atomic<uint8_t>* PeerArena::in_flight(uint32_t line) {
  const ArenaLayout& l = header_->layout;
  VERIFY(line < l.frames);
  return reinterpret_cast<std::atomic<uint8_t>*>(base_ + l.in_flight_at) + line;
}

}  // namespace coherence

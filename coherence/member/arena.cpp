#include "coherence/member/arena.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <new>

#include "coherence/base/os.hpp"
#include "coherence/base/verify.hpp"
#include "coherence/pool/fence.hpp"

namespace coherence {

ArenaLayout arena_layout(const ArenaSpec& spec) {
  auto page_aligned = [](uint64_t n) { return (n + 4095) / 4096 * 4096; };
  ArenaLayout l{};
  l.frames = spec.frames;
  l.sessions_max = spec.sessions_max;
  l.private_bytes = page_aligned(spec.private_bytes);
  l.sessions_at = page_aligned(sizeof(ArenaHeader));
  l.parked_at = page_aligned(l.sessions_at + spec.sessions_max * sizeof(SessionSlot));
  l.in_flight_at = page_aligned(l.parked_at + (uint64_t(spec.frames) + 63) / 64 * 8);
  l.hot_at = page_aligned(l.in_flight_at + spec.frames);
  l.lines_at = page_aligned(l.hot_at + sizeof(HotPages));
  l.frames_at = page_aligned(l.lines_at + uint64_t(spec.frames) * sizeof(Line));
  l.private_at = l.frames_at + uint64_t(spec.frames) * kPageSize;
  l.bytes = l.private_at + l.private_bytes;
  return l;
}

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

void ring(ArenaHeader& arena) noexcept {
  // Pairs with the worker's store of `sleeping` before its last look: one of the two sees the other.
  if (arena.sleeping.load(std::memory_order_seq_cst) == 0) return;
  arena.wakeup.fetch_add(1, std::memory_order_seq_cst);
  futex_wake(arena.wakeup, 1);
}

}  // namespace coherence

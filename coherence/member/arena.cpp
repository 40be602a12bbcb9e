#include "coherence/member/arena.hpp"

#include <unistd.h>

#include <cstdio>

#include "coherence/base/os.hpp"
#include "coherence/trace/flight_file.hpp"

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

void arena_path(const Pool& pool, NodeId node, uint64_t incarnation, char* out, size_t bytes) {
  arena_path(pool.path(), node, incarnation, out, bytes);
}

void arena_path(const char* pool, NodeId node, uint64_t incarnation, char* out, size_t bytes) {
  snprintf(out, bytes, "%s.node%d.%llu", pool, node.value, static_cast<unsigned long long>(incarnation));
}

void unlink_node_files(const Pool& pool, NodeId node, uint64_t incarnation) noexcept {
  char path[600];
  arena_path(pool, node, incarnation, path, sizeof path);
  unlink(path);
  flight_path(pool.path(), node, incarnation, path, sizeof path);
  unlink(path);
}

void ring(ArenaHeader& arena) noexcept {
  // Pairs with the worker's store of `sleeping` before its last look: one of the two sees the other.
  if (arena.sleeping.load(std::memory_order_seq_cst) == 0) return;
  arena.wakeup.fetch_add(1, std::memory_order_seq_cst);
  futex_wake(arena.wakeup, 1);
}

}  // namespace coherence

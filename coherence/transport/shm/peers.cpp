#include "coherence/transport/shm/peers.hpp"

#include <utility>

#include "coherence/base/os.hpp"

namespace coherence {
namespace {

void unmap(PeerArena* first) {
  while (first) {
    PeerArena* next = first->next;
    delete first;
    first = next;
  }
}

}  // namespace

Peers::~Peers() {
  for (auto& p : arena_) unmap(p.load());
  unmap(forgotten_);
}

Result<PeerArena*> Peers::at(NodeId n) noexcept {
  if (n.value >= node_.members->nodes_max()) return Errc::kNotFound;
  for (uint64_t tried = 0;;) {
    const NodeInfo info = node_.members->info(n);
    if (!info.serves()) return Errc::kNotFound;
    const uint64_t incarnation = info.incarnation;
    PeerArena* known = arena_[n.value].load(std::memory_order_acquire);  // pairs with the store below
    if (known && known->incarnation() == incarnation) return known;
    if (incarnation == tried) return Errc::kNoMemory;  // still there, so its file is, too
    tried = incarnation;
    SpinGuard guard(spin_);  // other threads of this process; a process of PostgreSQL has one
    known = arena_[n.value].load(std::memory_order_relaxed);
    if (known && known->incarnation() == incarnation) return known;
    if (PeerArena* fresh = PeerArena::map(node_.pool, n, incarnation)) {
      forget(n);
      arena_[n.value].store(fresh, std::memory_order_release);
    }
  }
}

void Peers::forget(NodeId n) noexcept {
  PeerArena* known = arena_[n.value].exchange(nullptr, std::memory_order_acq_rel);
  if (known == nullptr) return;
  known->next = forgotten_;
  forgotten_ = known;
}

// The only session of a process is here, not in the middle of a message; of several, one may be.
void Peers::unmap_forgotten() noexcept {
  if (node_.sessions_here.load(std::memory_order_acquire) > 1) return;
  PeerArena* all;
  {
    SpinGuard guard(spin_);
    all = std::exchange(forgotten_, nullptr);
  }
  unmap(all);
}

bool Peers::reach_all() noexcept {
  const uint64_t view = node_.members->view();
  if (reached_view_.load(std::memory_order_relaxed) == view) return true;
  for (uint32_t n = 0; n < node_.members->nodes_max(); n++) {
    NodeId peer{uint8_t(n)};
    if (peer == node_.id) continue;
    const auto mapped = at(peer);
    if (mapped) continue;
    if (mapped.error() == Errc::kNoMemory) return false;
    SpinGuard guard(spin_);
    forget(peer);
  }
  unmap_forgotten();
  reached_view_.store(view, std::memory_order_relaxed);
  return true;
}

void Peers::ring_all() noexcept {
  for (uint32_t n = 0; n < node_.members->nodes_max(); n++)
    if (NodeId peer{uint8_t(n)}; peer != node_.id)
      if (const auto mapped = at(peer)) ring((*mapped)->header());
}

void Peers::share(NodeId n, ArenaHeader& mapped) {
  SpinGuard guard(spin_);
  forget(n);
  arena_[n.value].store(PeerArena::alias(mapped), std::memory_order_release);
}

}  // namespace coherence

// PeerBoxes: memory that all processes of a node share, where its sessions leave messages for peers and its network
// worker leaves what peers ask.
//
// Which process may touch what:
//
// box.left-as-bits: What a session leaves for the worker is said by bits, set behind it, the highest level last; the
// worker takes them in the other order.  It takes them all each time, into memory of its own, also for a peer that it
// cannot send to: so nobody waits for a peer here, and each message is taken once.
// box.entry-changes-hands: An entry is for one slot of one peer.  Its word says whose it is: the worker's, while it is
// free and from when it is replied; from asked to taken it is nobody's, and the process that makes it taken may read
// what is asked; from replying to replied it is that process's, and so are the reply and the page.  Each step but the
// worker's from free and to free is a CAS on the whole word, or a store of the process that has the entry.
// box.entry-of-an-incarnation: The word names the peer's incarnation and the request's number.  The worker frees what
// is asked or taken when that incarnation is gone: the process that had taken it finds another word, and touches
// nothing.  An entry that is being replied to stays until that is done; a request of the next incarnation for it waits
// in the worker's memory.
// box.grants-in-order: The worker takes grants that are complete before replies, and sends them behind: so none
// overtakes its reply.  It takes wakeups before both, and sends them behind both.
// box.dies-with-its-node: A process that is killed in the middle leaves what is here in any state.  Its node ends, and
// the boxes with it: nothing here is repaired.
//
// 34 MB of addresses for each node that the pool may have, 2 GB for 58; what is never used takes no memory.  A slot
// that a peer has asked with keeps 8 KB once a page was sent to it, and 64 bytes.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "coherence/base/ids.hpp"
#include "coherence/message/slots.hpp"
#include "coherence/message/wakeup.hpp"
#include "coherence/transport/tcp/base/worker_wakeup.hpp"
#include "coherence/transport/tcp/message/message_frame.hpp"

namespace coherence::tcp {

// The word of an entry: its state (8 bits), the peer's incarnation (16), the request's serial (40).  Zeros: free.
struct EntryWord {
  enum class State : uint8_t { kFree = 0, kAsked, kTaken, kReplying, kReplied };
  uint64_t raw = 0;
  static constexpr EntryWord asked(uint64_t serial, uint64_t incarnation) {
    return {serial << 24 | (incarnation & 0xffff) << 8 | uint64_t(State::kAsked)};
  }
  constexpr EntryWord as(State state) const { return {(raw & ~uint64_t{0xff}) | uint64_t(state)}; }
  constexpr State state() const { return State(raw & 0xff); }
  constexpr bool is(State s) const { return state() == s; }
  constexpr bool is_of(uint64_t incarnation) const { return uint16_t(raw >> 8) == uint16_t(incarnation); }
  constexpr uint64_t serial() const { return raw >> 24; }
  constexpr uint16_t round() const { return uint16_t(serial()); }
  constexpr bool names(const PeerRequest& r) const { return round() == r.id && uint8_t(raw >> 8) == r.incarnation; }
};

// What a peer asks with one of its slots, and the reply.
struct alignas(64) PeerEntry {
  std::atomic<uint64_t> word;  // EntryWord
  // Asked; a process whose word is gone may be reading while the worker fills in the next one's:
  std::atomic<uint64_t> page;
  std::atomic<uint32_t> line;
  std::atomic<RequestKind> kind;
  std::atomic<uint8_t> priority;
  // The reply; its page is PeerBoxes::page().
  ReplyKind reply;
  bool in_flight;
  uint64_t more;
};
static_assert(sizeof(PeerEntry) == 64);

// A grant that is complete.
struct CompleteGrant {
  uint32_t line;
  uint8_t incarnation;  // of the peer
};

class PeerBoxes {
 public:
  static constexpr uint32_t kGrantsMax = 1024;  // that the worker has not taken, for one peer

  static uint64_t bytes_for(uint32_t nodes_max) noexcept;
  // In the process that the node's others come from, before they do.  `memory`: zeros, bytes_for(nodes_max) of them at
  // a multiple of 64, shared by all of them, and there for as long, as `worker_wakeup` is.
  PeerBoxes(void* memory, uint32_t nodes_max, WorkerWakeup& worker_wakeup) noexcept;
  PeerBoxes(const PeerBoxes&) = delete;

  uint32_t nodes_max() const noexcept { return nodes_max_; }
  // REQUIRES, here and below: the node is below nodes_max(), the slot below kPeerSlots.
  PeerEntry& entry(NodeId peer, uint32_t slot) noexcept { return box_[peer.value].entry[slot]; }
  std::byte* page(NodeId peer, uint32_t slot) noexcept { return box_[peer.value].page[slot]; }

  // --- of sessions; none of it waits but leave_grant()

  // A slot of this node asks the peer.
  void leave_ask(NodeId to, uint32_t slot) noexcept { leave(to, box_[to.value].asked, slot); }
  // The entry was replied to.
  void leave_reply(NodeId to, uint32_t slot) noexcept { leave(to, box_[to.value].replied, slot); }
  // Several of one event that the worker has not taken are one.
  void leave_wakeup(NodeId to, uint16_t event, uint16_t otherwise) noexcept;
  // Waits for the worker, if kGrantsMax are left: until it has taken some, the pool is fenced, or there is no worker.
  // Of a fenced node nothing is left: its death ends the grants.
  void leave_grant(NodeId to, CompleteGrant grant, const std::atomic<uint32_t>& fence) noexcept;
  // Waits until the worker has sent all that was left, and the peers have it or never will; or as above.
  void flush(const std::atomic<uint32_t>& fence) noexcept;

  // --- of the worker

  struct Wakeups {
    uint32_t events = 0;                // bits
    uint64_t otherwise[kWakeupEvents];  // of each of them bits, at least one
  };
  // take(peer) for each for which something was left.
  template <class Take>
  void take_peers(Take take) noexcept {
    for (NodeSet peers{header_->left_for.exchange(0, std::memory_order_seq_cst)}; !peers.empty();
         peers = peers.without(peers.first()))
      take(peers.first());
  }
  void take_wakeups(NodeId from, Wakeups* to) noexcept;
  // take(grant) for each, in order.
  template <class Take>
  void take_grants(NodeId to, Take take) noexcept;
  template <class Take>
  void take_replies(NodeId to, Take take) noexcept {
    take_bits(box_[to.value].replied, take);
  }
  template <class Take>
  void take_asks(NodeId to, Take take) noexcept {
    take_bits(box_[to.value].asked, take);
  }
  // Whether something was left since it was taken, but for flush().
  bool any_left() const noexcept { return header_->left_for.load(std::memory_order_seq_cst) != 0; }
  // Numbers of flushes: the last that was asked for; all up to this one are done.
  uint32_t flush_asked() const noexcept { return header_->flush_asked.load(std::memory_order_seq_cst); }
  void flushed(uint32_t number) noexcept;
  // There is no worker any more: nobody waits for it.
  void close() noexcept { header_->closed.store(1, std::memory_order_seq_cst); }

  WorkerWakeup& worker_wakeup() noexcept { return worker_wakeup_; }

 private:
  // Of one producer at a time, under `lock`, and the worker.
  struct Grants {
    std::atomic<uint32_t> lock, put, taken, waiting;
    CompleteGrant grant[kGrantsMax];  // [taken, put) are set, modulo kGrantsMax
  };
  struct Box {
    alignas(64) Inbox asked;
    alignas(64) Inbox replied;
    alignas(64) std::atomic<uint32_t> woken;  // events
    std::atomic<uint64_t> wake[kWakeupEvents];
    alignas(64) Grants grants;
    alignas(4096) PeerEntry entry[kPeerSlots];
    alignas(4096) std::byte page[kPeerSlots][kPageSize];
  };
  struct Header {
    alignas(64) std::atomic<uint64_t> left_for;  // peers
    std::atomic<uint32_t> flush_asked, flush_done, flushing, closed;
  };
  void leave(NodeId to, Inbox& bits, uint32_t slot) noexcept;
  void left_for(NodeId to) noexcept;
  bool put(Grants& grants, CompleteGrant grant, const std::atomic<uint32_t>& fence) noexcept;
  bool ends_waits(const std::atomic<uint32_t>& fence) const noexcept;
  static void wait(std::atomic<uint32_t>& word, uint32_t seen, std::atomic<uint32_t>& waiting) noexcept;
  static void wake(std::atomic<uint32_t>& word, std::atomic<uint32_t>& waiting) noexcept;
  template <class Take>
  static void take_bits(Inbox& bits, Take take) noexcept;

  Header* const header_;
  Box* const box_;
  const uint32_t nodes_max_;
  WorkerWakeup& worker_wakeup_;
};

template <class Take>
void PeerBoxes::take_bits(Inbox& bits, Take take) noexcept {
  for (uint64_t words = bits.words_set.exchange(0, std::memory_order_seq_cst); words; words &= words - 1) {
    const uint32_t w = uint32_t(std::countr_zero(words));
    for (uint64_t left = bits.bits[w].exchange(0, std::memory_order_seq_cst); left; left &= left - 1)
      take(w * 64 + uint32_t(std::countr_zero(left)));
  }
}

template <class Take>
void PeerBoxes::take_grants(NodeId to, Take take) noexcept {
  Grants& grants = box_[to.value].grants;
  const uint32_t put = grants.put.load(std::memory_order_acquire);  // pairs with put()
  uint32_t taken = grants.taken.load(std::memory_order_relaxed);
  if (taken == put) return;
  for (; taken != put; taken++) take(grants.grant[taken % kGrantsMax]);
  grants.taken.store(taken, std::memory_order_seq_cst);  // pairs with put()
  wake(grants.taken, grants.waiting);
}

}  // namespace coherence::tcp

// Chain: a batch as work requests of a queue pair, one for each operation, posted by one call: one doorbell.
//
// verbs.ordered-by-table: The operations of a batch take place in order (transport.batch-in-order) by what the
//     InfiniBand Architecture (volume 1, ordering of work requests) has for pairs of operations of one queue pair:
//
//       first \ second    WRITE   READ    atomic
//       WRITE             yes     yes     yes
//       READ, atomic      fence   yes     fence
//
//     So a WRITE or an atomic behind a READ or an atomic of its batch has IBV_SEND_FENCE, which waits until those are
//     complete: a round trip.  What a session does most, an atomic and then a READ, or a WRITE and then an atomic,
//     needs none.  No region has IBV_ACCESS_RELAXED_ORDERING, which would take the table back.
// verbs.load-is-a-read: LOAD is a READ of eight bytes.  An aligned word is whole for a device that reaches memory by
//     lines of the cache, and for rxe where the kernel copies words.  FETCH-ADD of 0 would be whole by the letter, and
//     needs a fence behind another: a batch of LOADs would take a round trip for each of them.
// verbs.last-is-signalled: The last work request of a batch alone has a completion: when it is complete all are.  An
//     operation that fails has one in any case.
// verbs.conditions-ignored: A READ with a condition is done whether or not it holds (OnlyIf).
//
// What is registered travels from and to its frame.  Other bytes, and old values, lie in the node's buffer; a WRITE of
// few bytes goes into the work request itself (inline).
#pragma once

#include <infiniband/verbs.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "coherence/transport/memory.hpp"

namespace coherence::verbs {

class Chain {
 public:
  struct Keys {
    uint32_t frames = 0, buffer = 0;  // of this node's regions
    uint32_t memory_node = 0;         // of the other side's
    uint32_t inline_bytes = 0;        // a WRITE of so many goes into its work request
  };
  // What a batch takes: work requests, at least one; and bytes of the buffer, a multiple of 8.
  static uint32_t requests(std::span<const Op>) noexcept;
  static uint32_t buffer_bytes(std::span<const Op>, uint32_t inline_bytes) noexcept;

  // Of a batch of at most kBatchOpsMax operations; `buffer` is its own, at a multiple of 8, until it is complete.
  // Bytes to WRITE that are not registered are copied.  It is valid until the next one is built.
  void build(std::span<const Op>, std::byte* buffer, const Keys&, uint64_t id) noexcept;
  ibv_send_wr* first() noexcept { return requests_; }
  uint32_t size() const noexcept { return size_; }

  // It is complete: sets old values, and copies what was READ and is not registered.
  static void take_results(std::span<Op>, const std::byte* buffer, uint32_t inline_bytes) noexcept;

 private:
  ibv_send_wr requests_[kBatchOpsMax];
  ibv_sge piece_[kBatchOpsMax];
  uint32_t size_ = 0;
};

}  // namespace coherence::verbs

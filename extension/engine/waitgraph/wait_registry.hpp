// WaitRegistry: where the primaries tell each other their waits: a place for each in Region::kWaits, and a ticket.
//
// waitgraph.seen-after-ticket: A node that searches takes a ticket; every node reads its waits after it has seen the
//     ticket, and then publishes them under it.  So what stands under a ticket was seen after the ticket was taken.
// waitgraph.list-read-whole: A list is read whole.  A node has places for two: it writes one while the other stands,
//     and then counts the publication, whose parity says which one stands.  A list was read whole when the count is the
//     same before and after.  If it is not, the next list stands already, and is read.  So a reader that is woken for
//     an answer finds it, whatever is published after that, and a node that dies in the middle leaves the list before.
// waitgraph.answers-wake: A node that takes a ticket counts in its own word after it; a node that answers reads those
//     words before it reads the ticket, and wakes the nodes whose words have changed after it has published.  So a node
//     whose word is seen finds its answer published when it is woken; and the wakeup that follows a ticket finds the
//     word.
// waitgraph.nothing-grows: Nothing here waits, and nothing grows: a node that has more waits than room says how many it
//     left out.  A reader reads again only when another ticket has been answered meanwhile.
//
//   asker:    ticket = *registry.ask(); [wake the others]
//             later, for each live node: registry.read(node, ticket, &records)
//   answerer: asked = *registry.asked();
//             if (asked.ticket > answered) registry.publish(asked.ticket, my_waits, left_out); [wake asked.by]
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "bufmgr/buffer_pool.hpp"
#include "extension/engine/waitgraph/wait_record.hpp"

namespace engine {

class WaitRegistry {
 public:
  WaitRegistry(coherence::Memory& memory, bufmgr::RegionSpan region, uint32_t nodes, coherence::NodeId self,
               uint64_t incarnation);

  // kFenced, here and for asked(): transport.unknown-cuts-off.  Of a list that may not have been written, or was not
  // read, nothing is said.
  coherence::Result<uint64_t> ask();
  struct Asked {
    uint64_t ticket = 0;      // the newest
    coherence::NodeSet by{};  // nodes that have taken tickets since the last asked() of this object
  };
  coherence::Result<Asked> asked();

  uint32_t room() const { return room_; }  // records per node
  // What this node sees now, having seen `ticket` before.  REQUIRES: one process of the node at a time;
  // records.size() <= room().
  void publish(uint64_t ticket, std::span<const WaitRecord> records, uint32_t left_out);
  // Nothing is told any more.  Also first of all in a new incarnation.
  void clear();

  // Appends the waits of `node` as of `ticket` or later.  False: it has not answered yet, or the pool cannot be read;
  // nothing is appended.
  bool read(coherence::NodeId node, uint64_t ticket, std::vector<WaitRecord>* records, uint32_t* left_out = nullptr);

 private:
  struct Head {
    uint64_t ticket;
    uint64_t incarnation;
    uint32_t count;
    uint32_t left_out;
  };
  // Byte 0: the ticket; from 64 on: a word for each node, of the tickets that it has taken; then the places.
  static constexpr uint64_t kAskersAt = 64, kPlacesAt = kAskersAt + 64 * 8;
  static_assert(coherence::kNodesMax <= 64);
  coherence::PoolAddress place_of(coherence::NodeId node) const { return at_ + (kPlacesAt + node.value * stride_); }
  uint64_t list_at(uint64_t publication) const;  // in a place, in bytes

  coherence::Memory& memory_;
  coherence::PoolAddress at_;
  uint64_t stride_;
  uint32_t room_;
  coherence::NodeId self_;
  uint64_t incarnation_;
  uint32_t nodes_;
  uint64_t taken_[coherence::kNodesMax]{};  // tickets, by node, as of the last asked()
};

}  // namespace engine

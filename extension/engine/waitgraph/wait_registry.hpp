// WaitRegistry: where the primaries tell each other their waits: a place for each in Region::kWaits, and a ticket.
//
// waitgraph.seen-after-ticket: A node that searches takes a ticket; every node reads its waits after it has seen the
//     ticket, and then publishes them under it.  So what stands under a ticket was seen after the ticket was taken.
// waitgraph.list-read-whole: A list is read whole or not at all: its version is odd while it is written, and the same
//     before and after a read.
// waitgraph.nothing-grows: Nothing here waits, and nothing grows: a node that has more waits than room says how many it
//     left out.
//
//   asker:    ticket = *registry.ask(); [wake the others]
//             later, for each live node: registry.read(node, ticket, &records)
//   answerer: if (*registry.asked() > answered) registry.publish(*registry.asked(), my_waits, left_out)
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
  coherence::Result<uint64_t> asked();  // the newest ticket

  uint32_t room() const { return room_; }  // records per node
  // What this node sees now, having seen `ticket` before.  REQUIRES: one process of the node at a time;
  // records.size() <= room().
  void publish(uint64_t ticket, std::span<const WaitRecord> records, uint32_t left_out);
  // Nothing is told any more.  Also first of all in a new incarnation.
  void clear();

  // Appends the waits of `node` as of `ticket` or later.  False: it has not answered yet; nothing is appended.
  bool read(coherence::NodeId node, uint64_t ticket, std::vector<WaitRecord>* records, uint32_t* left_out = nullptr);

 private:
  struct Head {
    uint64_t ticket;
    uint64_t incarnation;
    uint32_t count;
    uint32_t left_out;
  };
  coherence::PoolAddress version_of(coherence::NodeId node) const { return at_ + (64 + node.value * stride_); }
  void write(uint64_t ticket, std::span<const WaitRecord> records, uint32_t left_out);

  coherence::Memory& memory_;
  coherence::PoolAddress at_;
  uint64_t stride_;
  uint32_t room_;
  coherence::NodeId self_;
  uint64_t incarnation_;
};

}  // namespace engine

// DdlSlot: how one transaction of one primary reaches all others: a mailbox, acknowledgements, and what they have
// locked for it.
//
// Rules: ddl_log.owner-posts, ddl_log.slot-given-up-early, ddl_log.callers-poll (rules.md).
//
//   coordinator:  if (slot.take(me, now)) { n = slot.post(...); until all have replied to n ...; slot.give_up(me); }
//   others:       if (slot.sequence() != last) { slot.read(...); ...; slot.acknowledge(n, ok, text); }
#pragma once

#include <string_view>

#include "extension/engine/ddl/ddl_region.hpp"

namespace engine {

enum class DdlReply : uint8_t { kPending, kDone, kFailed, kGone };

struct DdlMessage {
  uint64_t sequence = 0;
  DdlHeader header{};
};

// What a slot's owner has locked on all primaries.
struct DdlGranted {
  uint64_t transaction = 0;  // 0: nothing
  uint64_t sequence = 0;     // of the newest message when it was read
  DdlHeader header{};        // of that message
  DdlHolder owner{};
  uint32_t count = 0;  // kDdlMoreTargets: more than are listed
  DdlTargetWord target[kDdlTargetsMax];
};

class DdlSlot {
 public:
  DdlSlot(DdlRegion& region, int number) : region_(&region), at_(region.slot_at(number)), number_(number) {}
  int number() const { return number_; }

  // --- its owner ----------------------------------------------------------------------------------------------------
  bool take(DdlHolder me, uint64_t now);
  void give_up(DdlHolder me) { (void)replace_owner(me, {}); }  // no-op if it is not the owner
  // False: the owner was another one.
  bool replace_owner(DdlHolder from, DdlHolder to);
  DdlHolder owner(uint64_t* since = nullptr);
  uint32_t window_bytes() const { return region_->window_bytes(); }
  // REQUIRES: this session is the owner; ddl_log.owner-posts.  Returns the message's number.
  uint64_t post(const DdlHeader& header, const void* body);
  // `incarnation`: as members() said when the message was posted.
  DdlReply reply_of(coherence::NodeId node, uint64_t incarnation, uint64_t sequence);
  // The text of the node's newest reply; at most kDdlReplyBytes.
  uint32_t reply_text(coherence::NodeId node, char* to);
  void cancel(uint64_t sequence);
  // ddl_log.slot-given-up-early.
  bool all_have_dealt();
  void comes_behind();
  // Target number `index` is about to be locked everywhere; it counts when set_granted() says so.
  void list_target(uint32_t index, DdlTargetWord target);
  void set_granted(uint32_t count);

  // Before the log has an entry of the transaction (ddl_log.id-before-entry).
  void set_txn(uint64_t txn);

  // --- the others ---------------------------------------------------------------------------------------------------
  uint64_t sequence() { return newest().number(); }
  DdlNewest newest();
  uint64_t cancelled();
  uint64_t txn();
  // False: a newer message took its place meanwhile; read again.
  bool read(uint64_t sequence, DdlHeader* header);
  bool read_body(const DdlMessage& message, void* to);
  uint64_t acknowledged();  // newest message this node has dealt with
  // The node that has to hear of it: it failed, or no other node has to deal with the message any more.  Of the last
  // two nodes, one sees the other; so do the last one and an heir.  Invalid: none has to.
  [[nodiscard]] coherence::NodeId acknowledge(uint64_t sequence, bool ok, std::string_view text);
  void acknowledge_all();  // as a node that joins; it has begun nothing
  // Whether this node has begun with the transaction: a process that finds no trace of it then has lost it.
  bool has_begun(uint64_t transaction);
  void begin(uint64_t transaction);
  // False: it changed meanwhile; read again.
  bool read_granted(DdlGranted* granted);

 private:
  coherence::PoolAddress word(uint32_t offset) const { return at_ + offset; }
  coherence::PoolAddress cell(coherence::NodeId node, uint32_t field) const {
    return at_ + (kDdlSlotCells + node.value * kDdlCellBytes + field);
  }
  coherence::MemoryNodeId memory_node() const { return at_.node(); }
  coherence::NodeId who_waits();

  DdlRegion* region_;
  coherence::PoolAddress at_;
  int number_;
};

}  // namespace engine

// An exhaustive exploration of line_machine's step(): 3 nodes, 1 line, one memory node, every interleaving.
//
// Abstractions.  Page contents are one "newest" flag per copy (pool, frames, posted WRITEs, READs under way, grants
// under way); a write clears every flag but the writer's.  A batch runs verb by verb at any time after it was posted;
// its completion is noticed at any time later.  A message arrives at any time.  Each node has one user, which fetches,
// hits, holds a guard for a while, and evicts; a parked request bounds its turns (gamma = 1).  Standing back and the
// interval between resends are delays, and every delay is explored.  Priorities end where a writer counts as starved,
// and are modelled where they decide what is answered (matching).  The nodes' bits are 0, 1 and 57: neighbours, and
// next to the owner field.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "coherence/latch/latch_word.hpp"
#include "coherence/line/line_machine.hpp"

namespace coherence::model {

inline constexpr int kNodes = 3;
inline constexpr uint8_t kPosition[kNodes] = {0, 1, 57};
inline NodeId id_of(int n) { return NodeId{kPosition[n]}; }
inline int index_of(NodeId id) { return id.value == 57 ? 2 : id.value; }
inline bool is_node(NodeId id) { return index_of(id) < kNodes; }  // false: a nonsense word named it

// What differs from the product.  The first group widens the environment; the second breaks a rule of the protocol by
// altering what the driver does around step(), and must be refuted.
struct Variant {
  const char* name = "";
  int crashes = 0;    // so many nodes may die, anywhere, one after the other or together; each is fenced, then repaired
  bool log = false;   // a changed page may leave only after a flush
  bool hold = false;  // node 0 may take a transaction-long hold, shared or exclusive; once while it has the page
  bool copies = false;  // node 2 may want to look once, and take a copy of what is held
  bool evicts = true;
  bool guards = true;  // hits hold guards for a while (else they are instantaneous)
  Features on = Features::all().without(Feature::kEarlyAnswers);
  bool mixed = false;       // node 0 does all, 1 nothing, 2 hand-over and ageing of what can be switched off
  bool priorities = false;  // requests have them
  // Requests and refusals of node first - 1 to node second - 1 may arrive a second time, at any later time, one at a
  // time.
  int outdated[2] = {0, 0};
  // Node leaver - 1 may leave when it holds nothing and has nothing under way, once, and joins again at once.
  int leaver = 0;

  bool forward_first = false;      // what was granted early may leave (coherence.early-grant-bound)
  bool transient_bits = false;     // a failed reader takes its bit back while it asks
  bool caseless = false;           // PeerInv and PeerWr are one message, and the first grant is acted on
  bool no_write_back = false;      // M -> M does not write to the pool (coherence.newest-bytes)
  bool free_before_write = false;  // the word is freed before the page is written
  bool steal = false;              // coherence.one-operation: a granted page may leave before its waiter ran
  bool upgrade_forever = false;    // upgrades are retried for ever, no node gives way
  bool copy_kept = false;          // coherence.copy-owns-nothing: a copy is taken for a share
  bool pending_kept = false;  // coherence.copy-owns-nothing: the pending-reader bit stays after a copy, or after Held
  bool hold_ignored = false;  // coherence.held-until-end: a held page is given away
  bool abandon = false;       // C5: a writer's wait is forgotten, not finished
  bool old_request_acted = false;  // coherence.request-taken-once: an outdated request is served
  bool old_reply_acted = false;  // coherence.request-taken-once: an outdated refusal is counted for the round under way
  // An incarnation takes a request that was for the one before it; counts a refusal of what that one asked
  // (coherence.messages-for-incarnation).
  bool former_request_taken = false, former_reply_acted = false;
  bool join_forgotten = false;  // coherence.reader-joins-taker: a joiner is granted a share without its bit
  bool join_twice =
      false;  // coherence.reader-joins-taker: a joiner of a dead node adds its bit without reading the word
  bool claim_refused = false;  // coherence.claim-then-ask: a node that does not know yet says it shares nothing
  bool lies = false;           // hints name another node (safe: a hint is no more than that)
  bool no_fence = false;       // repair.death-is-over: verbs of a dead node land after its repair
  bool no_redo = false;        // repair.redo-before-use: the page is used as the pool has it
  bool one_redo = false;       // repair.all-dead-redo: only the redo of the node that the word names
  bool blind_take = false;     // repair.take-over-by-exact-word: whatever the word is by then
  bool bits_kept = false;      // repair.share-means-pool-is-newest: a writer does not ask the sharers that are left
  bool no_quiesce = false;     // coherence.early-grant-bound: an early grantee of a dead node goes on without the word

  const char* expect = "";  // invariants that must break, e.g. "X1 X2"; any of them will do; empty: safe and live
};

enum Latch : uint8_t { kFree, kOperation, kGuardS, kGuardX, kGuardCopy };
enum Want : uint8_t { kNothing, kToRead, kToWrite, kToLook };
enum HoldM : uint8_t { kNoHold, kHoldS, kHoldX, kHeldBefore };

struct BatchM {
  Post post;
  uint8_t next, done;           // verbs run; all run
  uint8_t write_new, read_new;  // the newest bytes are in the WRITE, came with the READ
  uint8_t to;
};
struct MessageM {
  uint8_t kind, fresh;  // kind: of a refusal also the node that the page was passed to
};
inline constexpr uint8_t kPriorityMax = kStarvedFrom;
inline constexpr uint8_t kAnswered = 2;  // of NodeM::undo: the requester was answered when the batch was posted
inline constexpr uint8_t kOld = 0x80;    // of a second arrival: its round is over
// A message that names an incarnation which has left: a request that was filled in for it; a second arrival for it.
inline constexpr uint8_t kFormerRequest = 0x80, kFormerReply = 0x40;
inline constexpr uint8_t kGivenUp = 0x08;  // of such a request: the node that asked has counted the other as gone
constexpr uint8_t reply_message(ReplyKind kind, int passed_to) { return uint8_t(uint8_t(kind) | passed_to << 4); }
constexpr ReplyKind reply_of(uint8_t message) { return ReplyKind(message & 15); }
constexpr int passed_to_of(uint8_t message) { return message >> 4 & 3; }
constexpr uint8_t message(RequestKind kind, uint8_t priority) { return uint8_t(uint8_t(kind) | priority << 4); }
constexpr RequestKind kind_of(uint8_t message) { return RequestKind(message & 7); }
constexpr uint8_t priority_of(uint8_t message) { return message >> 4 & 7; }
struct NodeM {
  uint64_t old;
  MsiState msi;
  LineOp op;
  uint8_t failures;
  ReplyKind granted;
  uint8_t waiting, serving, serving_kind;
  uint8_t parked_count, parked_from[2], parked_kind[2];
  uint8_t held;
  uint8_t fresh, want, latch, turn, unflushed, undo;
  uint8_t priority, bar, parked_priority[2], copy_will_do, told;
  uint8_t grant_in_flight;  // node + 1 that granted early (coherence.early-grant-bound)
  uint8_t sharers;          // of the claim that is posted or stands; the joiners by the posted downgrade
  uint8_t passed_to;        // node + 1
  uint8_t hints;            // followed since it looked at the word
  uint8_t joins;            // its bit is not in the word (coherence.reader-joins-taker)
  uint8_t left;             // it is the next incarnation
  uint8_t taken_from;       // of the take-over that is posted: node + 1 of the dead owner
  uint8_t changed;          // it has changed the page since it was written back: its redo has the newest bytes
  uint8_t redo;             // it is dead, and its redo has what the newest bytes are
  BatchM batch;
};
static_assert(sizeof(NodeM) == 48);
struct State {
  uint64_t word;
  NodeM node[kNodes];
  uint8_t request[kNodes][kNodes];  // [from][to]: kind and priority
  MessageM reply[kNodes][kNodes];
  uint8_t request_again[kNodes][kNodes], reply_again[kNodes][kNodes];  // second arrivals; replies perhaps kOld
  uint8_t pool, dead;                                                  // of nodes: bits
  uint8_t fenced;  // of nodes: bits 0 to 2; bits 4 to 6: those that survivors know to be dead
  bool operator==(const State& o) const { return memcmp(this, &o, sizeof o) == 0; }
};
static_assert(sizeof(State) == 8 + kNodes * sizeof(NodeM) + kNodes * kNodes * 5 + 3);  // no padding: states are bytes

struct Edge {
  uint32_t to;
  uint8_t fair;    // fairness class; 0: the environment, which may stop
  uint8_t served;  // node + 1 that was pending and was served
};

struct Exploration {
  size_t states = 0;
  bool cut = false;
  std::string broken;   // "X2@10 X1@27"
  std::string starved;  // nodes that can starve (information)
  std::string trace;    // shortest path to the first broken invariant
};

// Explores until everything is seen, or, once an invariant broke, until `enough` states.
Exploration explore(const Variant& variant, size_t enough, size_t states_max);

}  // namespace coherence::model

// DdlWords: the layout of Region::kDdl.  Words and bytes, not pages.
//
//   0     log_root    raw PageId + 1 of the log's root page; 0: no log yet
//   8     entries     of the log, ever; information: the log's root page counts
//   16    wanted      1: a session waits for a DDL lock or a slot, and wants to hear when one is given back
//   64    the DDL locks (DdlLockWords): the whole cluster's, and one for each database that has had DDL
//   6144  one word for each node: 0, it takes no part; else a number that differs with every start
//   6656  one word for each node: the life of its data directory, in the host's own terms; 0: it has never been here
//   7168  one word for each node: how far it has applied the log (DdlApplied)
//   8192  the slots, all of one size: each for one transaction at a time
//
// A slot:
//   0     owner       whose transaction it is: DdlHolder, or 0
//   8     since       when the owner took it, in the host's own units
//   16    sequence    number and kind of the newest message (DdlNewest); changed last, so that a reader that sees it
//   sees
//                     the message
//   24    cancelled   messages up to this number are no longer wanted by their coordinator
//   32    granted     how many of the targets all participants have locked; kDdlMoreTargets: more than can be listed
//   40    txn         raw TxnId that decides; 0: none yet, so the transaction has not committed
//   (ddl_log.id-before-entry) 64    header      of the newest message (DdlHeader) 192   targets     what is locked for
//   the owner (DdlTargetWord), in the order in which it was 2048  one cell of 512 bytes for each node (DdlCell) then
//   the window: the body of the newest message
#pragma once

#include <cstddef>
#include <cstdint>

#include "coherence/base/ids.hpp"

namespace engine {

inline constexpr uint32_t kDdlLogRoot = 0, kDdlLogEntries = 8, kDdlWanted = 16, kDdlLocks = 64, kDdlMembers = 6144,
                          kDdlLives = 6656, kDdlApplied = 7168, kDdlSlots = 8192;
inline constexpr uint32_t kDdlSlotOwner = 0, kDdlSlotSince = 8, kDdlSlotSequence = 16, kDdlSlotCancelled = 24,
                          kDdlSlotGranted = 32, kDdlSlotTxn = 40, kDdlSlotHeader = 64, kDdlSlotTargets = 192,
                          kDdlSlotCells = 2048;
inline constexpr uint32_t kDdlCellBytes = 512;
inline constexpr uint32_t kDdlReplyBytes = kDdlCellBytes - 32;
inline constexpr uint32_t kDdlDatabaseBytes = 64;
inline constexpr uint32_t kDdlWindowBytesMin = 4096, kDdlWindowBytesMax = 64 << 10;

inline constexpr int kDdlSlotsMax = 24;
inline constexpr int kDdlDatabasesMax = 64;  // with a DDL lock of their own; more share
inline constexpr uint32_t kDdlTargetsMax = (kDdlSlotCells - kDdlSlotTargets) / 8;
inline constexpr uint32_t kDdlMoreTargets = ~uint32_t{0};

// A process: 63..56 node + 1, 55..48 low bits of the node's incarnation, 47..32 session, 31..0 process id.  No process
// of the node's next incarnation is mistaken for it, also if it has its number and its session.
//
// Or a node as the heir of a slot's owner that has died (ddl_log.one-heir): session kHeir, and the slot.
struct DdlHolder {
  static constexpr uint32_t kHeir = 0xffff;
  uint64_t raw = 0;
  static constexpr DdlHolder make(coherence::NodeId node, uint64_t incarnation, uint32_t session, uint32_t pid) {
    return {uint64_t(node.value + 1) << 56 | (incarnation & 0xff) << 48 | uint64_t{session & 0xffff} << 32 | pid};
  }
  static constexpr DdlHolder heir(coherence::NodeId node, uint64_t incarnation, int slot) {
    return make(node, incarnation, kHeir, uint32_t(slot));
  }
  constexpr bool held() const { return raw != 0; }
  constexpr coherence::NodeId node() const { return {uint8_t((raw >> 56) - 1)}; }  // REQUIRES: held()
  constexpr uint8_t incarnation() const { return uint8_t(raw >> 48); }
  constexpr uint32_t session() const { return uint32_t(raw >> 32) & 0xffff; }
  constexpr uint32_t pid() const { return uint32_t(raw); }
  constexpr bool is_heir() const { return session() == kHeir; }
  constexpr bool operator==(const DdlHolder&) const = default;
};

struct DdlLockWords {
  uint64_t key;  // of the database, from its name; 0: not needed yet
  uint64_t holder;
  uint64_t since;  // in the host's own units
  char database[kDdlDatabaseBytes];
};
static_assert(kDdlLocks + (1 + kDdlDatabasesMax) * sizeof(DdlLockWords) <= kDdlMembers);
static_assert(kDdlMembers + coherence::kNodesMax * 8 <= kDdlLives);
static_assert(kDdlLives + coherence::kNodesMax * 8 <= kDdlApplied);
static_assert(kDdlApplied + coherence::kNodesMax * 8 <= kDdlSlots);

// Which life of its data directory a node is in: a number of the host's, with a bit.
struct DdlLife {
  static constexpr uint64_t kEnded = 1;           // bit: that life has ended
  static constexpr uint64_t kForgotten = kEnded;  // no life: the number is given anew to a copy only
};

// How far a node has applied the log (ddl_log.known-node-first).  A known node is one that the log waits for: it has
// been here, or is to come.
struct DdlApplied {
  uint64_t raw = 0;
  static constexpr DdlApplied upto(uint64_t number) { return {number + 1}; }
  constexpr bool known() const { return raw != 0; }
  constexpr uint64_t number() const { return raw - 1; }  // REQUIRES: known()
};

// What a message asks of the other primaries.
enum class DdlKind : uint8_t {
  kNone = 0,
  kLock = 1,       // lock these relations, strongly
  kStatement = 2,  // run this statement
  kPrepare = 3,    // end all savepoints; the record is number `log_number`; be ready to commit
  kCommit = 4,     // the coordinator has committed
  kSavepoint = 6,  // savepoints were rolled back; the body names them
  kAbort = 5,      // the coordinator has rolled back, or wrote nothing after all
  kLast = 7,       // kStatement, and kPrepare behind it
};
inline constexpr int kDdlKinds = 8;

// The newest message of a slot: 63..56 its kind, 55..0 its number.  Both change at once: the header of a message that
// its owner has died in the middle of is half the one before.
struct DdlNewest {
  uint64_t raw = 0;
  static constexpr DdlNewest of(uint64_t number, DdlKind kind) { return {uint64_t(kind) << 56 | number}; }
  constexpr uint64_t number() const { return raw & ((uint64_t{1} << 56) - 1); }  // 0: there was none
  constexpr DdlKind kind() const { return DdlKind(raw >> 56); }
  // No transaction is under way in the slot: it has ended, or has posted nothing.
  constexpr bool ends() const { return number() == 0 || kind() == DdlKind::kCommit || kind() == DdlKind::kAbort; }
};

// Which DDL locks the coordinator has.
enum class DdlRight : uint8_t {
  kLocks = 0,     // none: it only locks tables
  kDatabase = 1,  // that of its database
  kWhole = 2,     // that of the whole cluster
};

struct DdlHeader {
  uint64_t transaction;   // number of the first message of this transaction
  uint64_t log_number;    // kPrepare, kCommit
  coherence::NodeSet to;  // which nodes it asks
  uint32_t bytes;         // of the part in the window
  uint32_t total;         // of the whole body; a body longer than the window is sent in parts
  uint32_t offset;        // of this part
  uint32_t pid;           // of the coordinator
  DdlKind kind;
  DdlRight right;
  uint8_t coordinator;  // node
  uint8_t lock;         // kDatabase: which DDL lock
  uint8_t of_cluster;   // kPrepare, kLast, kCommit: the record is in the history of no database
  uint8_t reserved[3];
  DdlHolder holder;  // of the transaction's DDL locks: its session
  char database[kDdlDatabaseBytes];
  int64_t posted;  // when, in the host's own units
};
static_assert(sizeof(DdlHeader) == 128 && kDdlSlotHeader + sizeof(DdlHeader) <= kDdlSlotTargets);

// One that ends the transaction, or a part of it; the coordinator does not wait for it, or has nothing more to do.
constexpr bool ends_locks(DdlKind kind) {
  return kind == DdlKind::kAbort || kind == DdlKind::kCommit || kind == DdlKind::kSavepoint;
}

struct DdlTargetWord {
  uint32_t relation, mode;
};

// What a node answers in a slot; written by that node only.
struct DdlCell {
  uint64_t ack;    // newest message it has dealt with << 1 | failed
  uint64_t begun;  // the transaction that it has begun to take part in
  uint32_t bytes;  // of the reply's text
  uint32_t reserved[3];
  char text[kDdlReplyBytes];
};
static_assert(sizeof(DdlCell) == kDdlCellBytes);

}  // namespace engine

// DdlWords: the layout of Region::kDdl.  Words and bytes, not pages: one transaction at a time writes DDL in the whole
// cluster, so one mailbox is enough.
//
//   0     lock        who may write DDL: DdlHolder, or 0
//   8     since       when the lock was taken, in the host's own units
//   16    sequence    number of the newest message; changed last, so that a reader who sees it sees the message
//   24    cancelled   messages up to this number are no longer wanted by their author
//   32    log_root    raw PageId + 1 of the log's root page; 0: no log yet
//   40    entries     of the log; information: the log's root page counts
//   64    header      of the newest message (DdlHeader)
//   192   one bell of 32 bits for each node: grows with every news for that node, which may sleep on it
//   512   one cell of 512 bytes for each of 58 nodes (DdlCell)
//   30208 the window: the body of the newest message
#pragma once

#include <cstddef>
#include <cstdint>

#include "coherence/base/ids.hpp"

namespace engine {

inline constexpr uint32_t kDdlLock = 0, kDdlSince = 8, kDdlSequence = 16, kDdlCancelled = 24, kDdlLogRoot = 32,
                          kDdlLogEntries = 40;
inline constexpr uint32_t kDdlHeader = 64, kDdlBells = 192;
inline constexpr uint32_t kDdlCells = 512, kDdlCellBytes = 512;
inline constexpr uint32_t kDdlWindow = kDdlCells + coherence::kNodesMax * kDdlCellBytes;
inline constexpr uint32_t kDdlWindowBytesMax = 64 << 10;
inline constexpr uint32_t kDdlReplyBytes = kDdlCellBytes - 32;
inline constexpr uint32_t kDdlDatabaseBytes = 64;

// Who holds the DDL lock: 63..56 node + 1, 55..32 session, 31..0 process id.
struct DdlHolder {
  uint64_t raw = 0;
  static constexpr DdlHolder make(coherence::NodeId node, uint32_t session, uint32_t pid) {
    return {uint64_t(node.value + 1) << 56 | uint64_t{session & 0xffffff} << 32 | pid};
  }
  constexpr bool held() const { return raw != 0; }
  constexpr coherence::NodeId node() const { return {uint8_t((raw >> 56) - 1)}; }  // REQUIRES: held()
  constexpr uint32_t session() const { return uint32_t(raw >> 32) & 0xffffff; }
  constexpr uint32_t pid() const { return uint32_t(raw); }
  constexpr bool operator==(const DdlHolder&) const = default;
};

// What a message asks of every other primary.
enum class DdlKind : uint8_t {
  kNone = 0,
  kLock = 1,       // lock these relations, strongly
  kStatement = 2,  // run this statement
  kPrepare = 3,    // end all savepoints; the record is number `log_number`; be ready to commit
  kCommit = 4,     // the author has committed
  kSavepoint = 6,  // savepoints were rolled back; the body names them
  kAbort = 5,      // the author has rolled back, or wrote nothing after all
};

struct DdlHeader {
  uint64_t exchange;    // number of the first message of this transaction
  uint64_t log_number;  // kPrepare, kCommit
  uint32_t bytes;       // of the part in the window
  uint32_t total;       // of the whole body; a body longer than the window is sent in parts
  uint32_t offset;      // of this part
  DdlKind kind;
  uint8_t author;      // node
  uint8_t of_cluster;  // kPrepare, kCommit: the record is in the history of no database
  uint8_t reserved;
  char database[kDdlDatabaseBytes];
  int64_t posted;  // when, in the host's own units
};
static_assert(sizeof(DdlHeader) == 104 && kDdlHeader + sizeof(DdlHeader) <= kDdlBells);
static_assert(kDdlBells + coherence::kNodesMax * 4 <= kDdlCells);

// What a node says of itself; written by that node only.
struct DdlCell {
  uint64_t member;  // 0: takes no part; else a number that differs with every start
  uint64_t ack;     // newest message it has dealt with << 1 | failed
  uint64_t life;    // of its data directory, in the host's own terms; 0: it has never been here
  uint32_t bytes;   // of the reply's text
  uint32_t reserved;
  char text[kDdlReplyBytes];
};
static_assert(sizeof(DdlCell) == kDdlCellBytes);

}  // namespace engine

// What came of an attempt to change or lock a row: PostgreSQL's TM_Result and TM_FailureData.
#pragma once

#include <cstdint>

#include "extension/engine/heap/row.hpp"
#include "extension/engine/txn/txn_id.hpp"

namespace engine {

enum class RowResult : uint8_t {
  kOk,
  kInvisible,     // not a row for this command: never committed, or its own transaction made or ended it at a later one
  kSelfModified,  // own transaction changed it at `cmax` >= the command
  kUpdated,       // another transaction replaced it and committed; see `next` and `moved`
  kDeleted,       // another transaction deleted it and committed
  kBeingModified,  // a running transaction changes it, and the caller asked not to wait
  kWouldBlock,     // a running transaction changes or locks it: WaitPolicy kSkip, kError of lock()
};

struct RowConflict {
  Tid next;           // kUpdated: the newer version; else the row itself
  TxnId by;           // the transaction that changed or holds it
  uint32_t cmax = 0;  // kSelfModified
  bool key_changed = false;
  bool moved = false;  // kUpdated: its new version is in another relation, and cannot be followed to
};

struct RowOutcome {
  RowResult result = RowResult::kOk;
  RowConflict conflict;
  bool out_of_line = false;  // kOk of remove(): the row refers to values that are stored elsewhere
};

}  // namespace engine

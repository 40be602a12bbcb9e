// Snapshot: what a statement sees.  The committed transactions with cts <= ts, and of its own transaction the commands
// before `command`.
#pragma once

#include <cstdint>

#include "extension/engine/txn/txn_id.hpp"

namespace engine {

enum class SnapshotKind : uint8_t {
  kMvcc,           // cts <= ts, own commands < command
  kSelf,           // newest committed and everything of the own transaction (PostgreSQL's SnapshotSelf)
  kDirty,          // as kSelf, but running inserters and deleters are waited for, inside (unique and exclusion checks)
  kAny,            // every version that is still there (PostgreSQL's SnapshotAny)
  kPart,           // every version whose insert was not rolled back: parts of a value that a row the snapshot sees
                   // refers to, and that therefore need no judgement of their own (SnapshotToast)
  kNonVacuumable,  // whatever some snapshot might still see
};

// "Of its own" means the running transaction of the TxnSystem that reads: there is nothing else to name it by.
struct Snapshot {
  SnapshotKind kind = SnapshotKind::kMvcc;
  Cts ts{};
  uint32_t command = 0;  // own changes at commands >= this are not seen
  // kMvcc, of a transaction that holds what it reads: pages are held before they are read, and a version that was made
  // or ended since `ts` is kConflict (serializable/rules.md).  Of no effect when it holds nothing any more.
  bool strict = false;
};

}  // namespace engine

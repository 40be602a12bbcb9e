// What deleting, updating and locking have in common.
#pragma once

#include "extension/engine/heap/heap.hpp"
#include "extension/engine/heap/page_change.hpp"

namespace engine {

inline bool line_is_row(const ExclusiveGuard& page, uint16_t line) {
  HeapPage view(page.bytes());
  return line >= 1 && line <= view.lines() && view.line(line).normal();
}

inline RowOutcome no_such_row(Tid tid) { return {.result = RowResult::kInvisible, .conflict = {.next = tid}}; }

// judge(), and what the lock cells say of a version that has some.  REQUIRES: an exclusive guard on the row's page.
inline Status Heap::judge_version(const RowHeader& row, PageId page, Tid tid, const WantedLock& wanted,
                                  const Facts& facts, Holders* holders, UpdateCheck* check) {
  *check = judge(txns_, facts, row, page, tid, wanted, holders);
  if (!row.has_lockers()) return {};
  if (check->kind == UpdateCheck::kGo) GCL_TRY(judge_cells(row, tid, wanted, facts, holders, check));
  return check->kind == UpdateCheck::kWait ? judge_own_cells(tid, holders, check) : Status{};
}

}  // namespace engine

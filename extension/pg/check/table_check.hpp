// The checks of one table and of one index, and whether they agree.
#pragma once

#include "extension/engine/check/heap_check.hpp"
#include "extension/pg/check/check_report.hpp"

namespace gcl {

// Owned by the current memory context: the destructor runs when that goes, by an ERROR too.
template <class T, class... Arguments>
T* made_in_context(Arguments&&... arguments) {
  auto* callback = static_cast<MemoryContextCallback*>(palloc0(sizeof(MemoryContextCallback)));
  T* made = new T(std::forward<Arguments>(arguments)...);
  callback->func = [](void* object) { delete static_cast<T*>(object); };
  callback->arg = made;
  MemoryContextRegisterResetCallback(CurrentMemoryContext, callback);
  return made;
}

void check_table(Relation table, engine::HeapCheck& rows, CheckReport& report);
// `agree`: also each entry of a row that the snapshot sees has that row's key.
void check_index(Relation table, Relation index, engine::HeapCheck& rows, const engine::Snapshot* agree,
                 CheckReport& report);
// Each row that the snapshot sees has its entry in each index.
void check_rows_indexed(Relation table, const List* indexes, const engine::Snapshot& snapshot, CheckReport& report);

}  // namespace gcl

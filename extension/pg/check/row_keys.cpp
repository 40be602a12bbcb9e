#include "extension/pg/check/row_keys.hpp"

#include "extension/engine/check/find_entry.hpp"
#include "extension/pg/check/attribute_walk.hpp"
#include "extension/pg/indexam/open.hpp"
#include "extension/pg/tableam/table_am.hpp"

extern "C" {
#include "catalog/index.h"
#include "executor/executor.h"
}

namespace gcl {

RowKeys::RowKeys(Relation table, Relation index)
    : table_(table),
      index_(index),
      info_(BuildIndexInfo(index)),
      estate_(CreateExecutorState()),
      context_(GetPerTupleExprContext(estate_)),
      predicate_(ExecPrepareQual(info_->ii_Predicate, estate_)),
      slot_(MakeSingleTupleTableSlot(RelationGetDescr(table), &TTSOpsHeapTuple)),
      row_(static_cast<std::byte*>(palloc(engine::kRowBytesMax))),
      compare_(index) {
  context_->ecxt_scantuple = slot_;
}

RowKeys* made_row_keys(Relation table, Relation index) { return new (palloc(sizeof(RowKeys))) RowKeys(table, index); }

void RowKeys::take_row(std::byte* row, uint32_t bytes, engine::Tid tid, bool* laid) {
  MemoryContextReset(context_->ecxt_per_tuple_memory);
  if (!*laid) lay_header(row, tid);
  *laid = true;
  store_laid(table_, row, bytes, tid, slot_);
}

bool RowKeys::compute() {
  MemoryContext caller = MemoryContextSwitchTo(context_->ecxt_per_tuple_memory);
  const bool in = predicate_ == nullptr || ExecQual(predicate_, context_);
  if (in) {
    FormIndexDatum(info_, slot_, estate_, values_, nulls_);
    const int attributes = IndexRelationGetNumberOfKeyAttributes(index_);
    search_.prepare(attributes);
    for (int i = 0; i < attributes; ++i) search_.add(index_, values_[i], nulls_[i]);
  }
  MemoryContextSwitchTo(caller);
  return in;
}

coherence::Result<bool> RowKeys::has_entry(engine::Tid root) {
  return engine::find_entry(pool(), session(), open_tree(index_), compare_, &search_, root);
}

coherence::Result<bool> RowKeys::take_row_of(engine::Tid tid, const engine::Snapshot& snapshot) {
  ExecClearTuple(slot_);
  auto read = heap_of(table_).fetch_chain(tid, snapshot, row_);
  if (!read) return read.error();
  row_bytes_ = read->bytes;
  row_tid_ = read->tid;
  return read->found;
}

const char* RowKeys::entry_defect(std::span<const std::byte> key) {
  const engine::Tid tid = engine::blink::load_tid(key.data());
  if (row_defect(RelationGetDescr(table_), {row_, row_bytes_}) != nullptr) return nullptr;  // told of with the table
  bool laid = false;
  take_row(row_, row_bytes_, row_tid_, &laid);
  if (!compute())
    return psprintf("index entry for row (%u,%u), which the index predicate leaves out", tid.block,
                    unsigned(tid.offset));
  if (compare_.compare(&search_, key) == 0) return nullptr;
  return psprintf("index entry has another key than its row (%u,%u)", tid.block, unsigned(tid.offset));
}

void RowKeys::release() {
  ExecDropSingleTupleTableSlot(slot_);
  FreeExecutorState(estate_);
}

}  // namespace gcl

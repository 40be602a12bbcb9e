// RowKeys: what key a row has in an index.  Expressions and predicates are the table owner's: see check.cpp for whose
// rights they run with.
#pragma once

#include "extension/engine/blink/tree.hpp"
#include "extension/engine/heap/heap.hpp"
#include "extension/pg/indexam/compare.hpp"

extern "C" {
#include "nodes/execnodes.h"
}

namespace gcl {

class RowKeys {
 public:
  RowKeys(Relation table, Relation index);
  Relation index() const { return index_; }

  // The row at hand.  `laid`: whether the bytes have got PostgreSQL's header already (once per copy).
  void take_row(std::byte* row, uint32_t bytes, engine::Tid tid, bool* laid);
  // False: the index leaves the row out.  Runs the owner's code.
  bool compute();
  // After compute(): whether the index has the row's entry under `root`.
  coherence::Result<bool> has_entry(engine::Tid root);
  // Takes the row that the snapshot sees behind an entry, if any.
  coherence::Result<bool> take_row_of(engine::Tid tid, const engine::Snapshot& snapshot);
  // After take_row_of(): what is wrong with the entry; null: nothing.
  const char* entry_defect(std::span<const std::byte> key);
  void release();

 private:
  Relation table_, index_;
  IndexInfo* info_;
  EState* estate_;
  ExprContext* context_;
  ExprState* predicate_;
  TupleTableSlot* slot_;
  std::byte* row_;
  uint32_t row_bytes_ = 0;
  engine::Tid row_tid_;
  TupleComparator compare_;
  SearchKey search_;
  Datum values_[INDEX_MAX_KEYS];
  bool nulls_[INDEX_MAX_KEYS];
};

// In the current memory context; to be released when done with, or by an ERROR.
RowKeys* made_row_keys(Relation table, Relation index);

}  // namespace gcl

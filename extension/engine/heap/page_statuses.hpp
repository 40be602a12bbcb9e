// The statuses that the rows of a page are judged by, asked for in one round trip.
#pragma once

#include "extension/engine/heap/heap_page.hpp"
#include "extension/engine/txn/status_batch.hpp"

namespace engine {

class PageStatuses {
 public:
  PageStatuses(TxnSystem& txns, const HeapPage& page) : batch_(txns), page_(page) {}
  // Before the row in that line is judged.  The first that names an unknown id asks for those of the lines after it,
  // too.
  Status before(uint16_t line, const RowHeader& row) { return names_unknown(row) ? ask_from(line) : Status(); }

 private:
  bool names_unknown(const RowHeader& row) const {
    return (row.creator.kind() == RowTxnKind::kInserted && batch_.is_unknown(row.creator.id())) ||
           (row.ended() && batch_.is_unknown(row.deleter.id()));
  }
  Status ask_from(uint16_t line);
  void add(TxnId id) {
    if (!batch_.full() && batch_.is_unknown(id)) batch_.add(id);
  }

  StatusBatch batch_;
  const HeapPage& page_;
};

}  // namespace engine

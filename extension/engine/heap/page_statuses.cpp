#include "extension/engine/heap/page_statuses.hpp"

namespace engine {

Status PageStatuses::ask_from(uint16_t line) {
  for (const uint16_t lines = page_.lines(); line <= lines && !batch_.full(); ++line) {
    if (!page_.line(line).normal()) continue;
    const RowHeader row = page_.row_header(line);
    if (row.creator.kind() == RowTxnKind::kInserted) add(row.creator.id());
    if (row.ended()) add(row.deleter.id());
  }
  return batch_.ask();
}

}  // namespace engine

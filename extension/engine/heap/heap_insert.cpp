// Inserting rows.
#include <algorithm>

#include "extension/engine/heap/heap.hpp"
#include "extension/engine/heap/page_change.hpp"
#include "extension/engine/stop/stop_point.hpp"

namespace engine {

namespace {

uint32_t row_bytes(const RowImage& row) { return kRowHeaderBytes + row.body_bytes; }

}  // namespace

void compose_row(const RowImage& row, TxnId creator, uint32_t command, Tid at, uint8_t flags, std::byte* to) {
  RowHeader header{};
  header.creator = RowTxn::of(RowTxnKind::kInserted, creator);
  header.word = command | (row.out_of_line ? kOutOfLine : 0);
  header.set(at.offset, row.natts, uint8_t(flags | (row.has_null ? kHasNull : 0)));
  std::memcpy(to, &header, sizeof header);
  std::memcpy(to + kRowHeaderBytes, row.body, row.body_bytes);
}

Result<Tid> Heap::insert(const RowImage& row, uint32_t command) {
  Tid tid;
  auto count = multi_insert({&row, 1}, command, &tid);
  if (!count) return count.error();
  stop_at(txns_.session(), StopPoint::kHeapRowInserted);
  return tid;
}

Result<uint32_t> Heap::multi_insert(std::span<const RowImage> rows, uint32_t command, Tid* tids) {
  if (rows.empty()) return 0u;
  for (const RowImage& row : rows)
    if (row_bytes(row) > kRowBytesMax) return Errc::kTooLarge;
  auto id = txns_.id_for_write();
  if (!id) return id.error();
  auto& pool = txns_.pool();
  alignas(8) std::byte image[coherence::kPageSize];
  for (bool pruned = false;;) {
    GCL_TRY(ensure_target(row_bytes(rows[0])));
    auto page = page_of(target_);
    if (!page) return page.error();
    GCL_TRY(hold_to_insert(*page));
    MiniTransaction change(pool, txns_.session());
    GCL_TRY(change.reserve(2 * coherence::kPageSize + kLinesMax * 4));
    auto guard = pool.fix_exclusive(txns_.session(), *page, bufmgr::Others::kOfOtherParts);
    if (!guard) return guard.error();
    uint16_t line = line_for(*guard);
    uint32_t place = place_for(*guard, line, row_bytes(rows[0]));
    if (place == 0) {
      uint32_t left = room(*guard);
      bool try_prune = !pruned && guard->header().reserved != 0;
      guard->release();
      if (try_prune) {
        pruned = true;
        auto removed = prune(target_, row_bytes(rows[0]));
        if (!removed) return removed.error();
        if (*removed != 0) continue;
      }
      pruned = false;
      GCL_TRY(give_up_target(left, row_bytes(rows[0])));
      continue;
    }
    change.join(*guard);
    format_if_unused(change, *guard, uint32_t(relation_.header.number()));
    HeapPage view(guard->bytes());
    PageSpace space = PageSpace::of(guard->header());
    if (line <= view.lines() || place >= space.upper) {  // an unused line pointer, or a hole: one row at a time
      tids[0] = {target_, line};
      compose_row(rows[0], *id, command, tids[0], 0, image);
      put_row(change, *guard, line, place, image, row_bytes(rows[0]));
      change.commit();
      return 1u;
    }
    // Rows side by side and line pointers side by side: three ranges, however many rows.
    Line lines[kLinesMax];
    uint32_t count = 0, upper = space.upper;
    while (count < rows.size() && line + count <= kLinesMax) {
      uint32_t bytes = row_bytes(rows[count]);
      if (upper < align8(bytes) + space.lower + (count + 1) * 4) break;
      upper -= align8(bytes);
      tids[count] = {target_, uint16_t(line + count)};
      compose_row(rows[count], *id, command, tids[count], 0, image + upper);
      std::memset(image + upper + bytes, 0, align8(bytes) - bytes);
      lines[count++] = Line::normal(upper, bytes);
    }
    change.write(*guard, upper, image + upper, space.upper - upper);
    change.write(*guard, space.lower, lines, count * 4);
    space.upper = uint16_t(upper);
    space.lower = uint16_t(space.lower + count * 4);
    space.flags = uint16_t(space.flags & ~HeapPage::kHasUnused);
    set_space(change, *guard, space);
    change.commit();
    return count;
  }
}

Status Heap::abandon(Tid tid) {
  auto page = page_of(tid.block);
  if (!page) return page.error();
  MiniTransaction change(txns_.pool(), txns_.session());
  GCL_TRY(change.reserve(kLogForHeader));
  auto guard = txns_.pool().fix_exclusive(txns_.session(), *page, bufmgr::Others::kOfOtherParts);
  if (!guard) return guard.error();
  HeapPage view(guard->bytes());
  VERIFY(tid.offset >= 1 && tid.offset <= view.lines() && view.line(tid.offset).normal());
  VERIFY(txns_.current().is_mine(view.row_header(tid.offset).creator.id()));
  change.join(*guard);
  change.set(*guard, view.line(tid.offset).offset(), RowTxn::of(RowTxnKind::kAborted));
  count_superseded(change, *guard);
  change.commit();
  return {};
}

}  // namespace engine

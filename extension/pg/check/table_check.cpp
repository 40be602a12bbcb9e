#include "extension/pg/check/table_check.hpp"

#include "extension/engine/check/tree_check.hpp"
#include "extension/pg/check/attribute_walk.hpp"
#include "extension/pg/check/index_keys.hpp"
#include "extension/pg/check/row_keys.hpp"
#include "extension/pg/indexam/open.hpp"

namespace gcl {

namespace {

// A page's rows that a snapshot sees, and where their chains begin.
struct PageOfRows {
  Relation table;
  engine::PageRows* rows;
  uint16_t roots[engine::kLinesMax + 1];
};

void check_attributes(Relation table, const engine::HeapCheck& rows, CheckReport& report) {
  const engine::HeapPage view(rows.block_bytes());
  for (uint16_t line = 1; line <= rows.lines(); ++line) {
    if (!rows.usable(line)) continue;
    const std::span row{view.row(line), view.line(line).bytes()};
    if (const char* defect = row_defect(RelationGetDescr(table), row)) report.add(rows.line_at(line), defect);
  }
}

}  // namespace

void check_table(Relation table, engine::HeapCheck& rows, CheckReport& report) {
  report.begin(table);
  const engine::FindingPlace header{.page = relation_page(table)};
  if (!report.step(header, [&] { return rows.maps().check(report.findings()); })) return;
  for (uint32_t i = 0; i < rows.maps().extents(); ++i) {
    CHECK_FOR_INTERRUPTS();
    (void)report.step(header, [&] { return rows.maps().check_locks(i, rows.limits(), report.findings()); });
  }
  const auto blocks = uint32_t(rows.maps().blocks().size());  // later ones hold nothing that is old enough
  for (uint32_t i = 0; i < blocks; ++i) {
    CHECK_FOR_INTERRUPTS();
    if (report.step(header, [&] { return rows.check_block(i, report.findings()); }))
      check_attributes(table, rows, report);
  }
}

namespace {

coherence::Status said(const coherence::Result<bool>& result, bool* is) {
  if (!result) return result.error();
  *is = *result;
  return {};
}

// Each entry of a leaf whose row the snapshot sees has that row's key.
void check_keys(const engine::NodeCopy& page, RowKeys& keys, const engine::Snapshot& snapshot, CheckReport& report) {
  for (uint32_t i = 0; i < page.head.count; ++i) {
    const std::span<const std::byte> key = page.key(i);
    bool sees = false;
    const engine::Tid tid = engine::blink::load_tid(key.data());
    if (!report.step(page.at(i), [&] { return said(keys.take_row_of(tid, snapshot), &sees); }) || !sees) continue;
    if (const char* defect = keys.entry_defect(key)) report.add(page.at(i), defect);
  }
}

}  // namespace

void check_index(Relation table, Relation index, engine::HeapCheck& rows, const engine::Snapshot* agree,
                 CheckReport& report) {
  report.begin(index);
  IndexKeys keys(index);
  const coherence::PageId meta = relation_page(index);
  auto* tree = made_in_context<engine::TreeCheck>(txns(), meta, keys, &rows);
  RowKeys* of_rows = agree != nullptr ? made_row_keys(table, index) : nullptr;
  bool more = false;
  const engine::FindingPlace at{.page = meta};
  (void)report.step(at, [&] { return said(tree->begin(report.findings()), &more); });
  while (more) {
    CHECK_FOR_INTERRUPTS();
    if (!report.step(tree->page().at(), [&] { return said(tree->next(report.findings()), &more); }) || !more) break;
    const engine::NodeCopy& page = tree->page();
    if (of_rows != nullptr && page.sound && page.head.leaf() && !page.head.gone())
      check_keys(page, *of_rows, *agree, report);
  }
  if (of_rows != nullptr) of_rows->release();
  ereport(DEBUG1,
          errmsg_internal("index \"%s\": %llu pages, %llu entries, %llu pairs of pages not compared",
                          RelationGetRelationName(index), (unsigned long long)tree->counts().pages,
                          (unsigned long long)tree->counts().entries, (unsigned long long)tree->counts().not_compared));
}

namespace {

// Whether the row at hand is where each index has to lead to it.
void check_row(const PageOfRows& page, uint16_t line, const List* keys, CheckReport& report) {
  const engine::Tid root{page.rows->block, page.roots[line]};
  std::byte* const row = page.rows->row(line);
  const uint32_t bytes = page.rows->bytes(line);
  if (!root.valid() || row_defect(RelationGetDescr(page.table), {row, bytes}) != nullptr) return;  // told of before
  bool laid = false;
  ListCell* cell;
  foreach (cell, keys) {
    auto* of_index = static_cast<RowKeys*>(lfirst(cell));
    of_index->take_row(row, bytes, {root.block, line}, &laid);
    bool has = true;
    report.begin(of_index->index());
    const bool told =
        !of_index->compute() || !report.step({}, [&] { return said(of_index->has_entry(root), &has); }) || has;
    if (!told)
      report.add({},
                 psprintf("row (%u,%u) of table \"%s\" lacks its index entry, which would point to (%u,%u)", root.block,
                          unsigned(line), RelationGetRelationName(page.table), root.block, unsigned(root.offset)));
  }
}

}  // namespace

void check_rows_indexed(Relation table, const List* indexes, const engine::Snapshot& snapshot, CheckReport& report) {
  List* keys = NIL;
  ListCell* cell;
  foreach (cell, indexes) keys = lappend(keys, made_row_keys(table, static_cast<Relation>(lfirst(cell))));
  engine::Heap& heap = heap_of(table);
  const uint32_t used = *until_done(table, [&] { return heap.used_blocks(); });
  auto* block = static_cast<uint32_t*>(MemoryContextAllocHuge(CurrentMemoryContext, sizeof(uint32_t) * Max(used, 1u)));
  for (uint32_t i = 0; i < used; ++i) block[i] = heap.block_at(i);
  PageOfRows page{
      .table = table, .rows = static_cast<engine::PageRows*>(palloc(sizeof(engine::PageRows))), .roots = {}};
  for (uint32_t i = 0; i < used; ++i) {
    CHECK_FOR_INTERRUPTS();
    report.begin(table);
    const bool read = report.step({.page = {}, .block = block[i]}, [&]() -> coherence::Status {
      GCL_TRY(heap.read_block(block[i], snapshot, *page.rows));
      return heap.roots_of(*page.rows, page.roots);
    });
    for (int r = 0; read && r < page.rows->count; ++r) check_row(page, page.rows->offset[r], keys, report);
  }
  foreach (cell, keys) static_cast<RowKeys*>(lfirst(cell))->release();
}

}  // namespace gcl

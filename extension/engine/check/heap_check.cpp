#include "extension/engine/check/heap_check.hpp"

#include <algorithm>

#include "extension/engine/check/page_check.hpp"

namespace engine {

namespace {

unsigned long long shown(uint64_t raw) { return raw; }

bool ended_after(const TxnStatus& end, const Snapshot& snapshot) { return end.committed() && end.cts > snapshot.ts; }

}  // namespace

// The page is copied first, the statuses are asked for after it: what has come to its end by then is final.
Status HeapCheck::check_block(uint32_t i, Findings& findings) {
  block_ = maps_.blocks()[i];
  page_ = maps_.page_of(block_);
  line_count_ = 0;
  if (!page_.valid()) return {};
  GCL_TRY(txns_.pool().copy_page(txns_.session(), page_, copy_));
  HeapPage view(copy_);
  const FindingPlace at{page_, block_};
  GCL_TRY(check_allocated(txns_, page_, at, findings));
  if (view.header().type == PageType::kUnused) return {};  // (heap.first-extent-singles) in use, and not yet formatted
  if (!check_header(copy_, PageType::kHeap, uint32_t(relation_.header.number()), at, findings)) return {};
  if (!check_heap_page(copy_, attributes_, at, findings)) return {};
  std::fill(root_, root_ + kLinesMax + 1, uint16_t{0});
  const uint16_t lines = view.lines();
  for (uint16_t line = 1; line <= lines; ++line) GCL_TRY(learn(line, findings));
  line_count_ = lines;
  for (uint16_t line = 1; line <= lines; ++line) GCL_TRY(check_chain(line, findings));
  for (uint16_t line = 1; line <= lines; ++line) {
    const History& version = history_[line];
    if (!version.known) continue;
    GCL_TRY(check_link(line, findings));
    // Versions of updates that were rolled back are the only ones that nothing leads to.
    if (version.row.heap_only() && root_[line] == 0 && !version.never())
      findings.add(line_at(line), "heap-only version is not reached by any chain of the page");
  }
  return {};
}

Status HeapCheck::learn(uint16_t line, Findings& findings) {
  HeapPage view(copy_);
  History& version = history_[line] = {};
  if (!view.line(line).normal()) return {};
  version.row = view.row_header(line);
  version.known = true;
  GCL_TRY(learn_deleter(line, findings));
  GCL_TRY(learn_creator(line, findings));
  if (version.known) check_order(line, findings);
  return {};
}

// check.ids-were-assigned, check.words-say-something.
Status HeapCheck::status_of(TxnId id, uint16_t line, const char* what, std::optional<TxnStatus>* status,
                            Findings& findings) {
  auto exists = limits_.may_exist(id);
  if (!exists) return exists.error();
  if (*exists) {
    if (txns_.current().is_mine(id)) {
      *status = TxnStatus{.state = TxnState::kActive, .cts = {}, .top = txns_.current().top(), .parent = {}};
      return {};
    }
    auto found = txns_.status(id);
    if (found) {
      *status = *found;
      return {};
    }
    if (found.error() != Errc::kCorrupt) return found.error();
  }
  findings.add(line_at(line), "%s %llu of node %u has never been assigned", what, shown(id.sequence()),
               unsigned(id.node().value));
  history_[line].known = false;
  return {};
}

Status HeapCheck::learn_deleter(uint16_t line, Findings& findings) {
  History& version = history_[line];
  const RowTxn deleter = version.row.deleter;
  switch (deleter.kind()) {
    case RowTxnKind::kNone:
      if (deleter.raw == 0) return {};
      break;
    case RowTxnKind::kDeleted:
    case RowTxnKind::kUpdated:
    case RowTxnKind::kUpdatedKey:
    case RowTxnKind::kLocked:
      if (deleter.outer().raw == 0 || deleter.outer().raw >= 4)
        return status_of(deleter.id(), line, "deleting transaction", &version.deleter, findings);
      break;
    default:
      break;
  }
  findings.add(line_at(line), "deleter word %#llx has no meaning", shown(deleter.raw));
  version.known = false;
  return {};
}

Status HeapCheck::learn_creator(uint16_t line, Findings& findings) {
  History& version = history_[line];
  const RowTxn creator = version.row.creator;
  const uint64_t low = creator.cts().value;
  switch (creator.kind()) {
    case RowTxnKind::kInserted:
      if (low >> TxnId::kBits == 0)
        return status_of(creator.id(), line, "creating transaction", &version.creator, findings);
      break;
    case RowTxnKind::kCommitted: {
      auto exists = limits_.may_exist(creator.cts());
      if (!exists) return exists.error();
      if (*exists) return {};
      findings.add(line_at(line), "creating transaction committed at %llu, which is in the future", shown(low));
      version.known = false;
      return {};
    }
    case RowTxnKind::kFrozen:
    case RowTxnKind::kAborted:
      if (low == 0) return {};
      break;
    default:
      break;
  }
  findings.add(line_at(line), "creator word %#llx has no meaning", shown(creator.raw));
  version.known = false;
  return {};
}

// (check.ended-was-made) a transaction that ends a version has seen that it was made.
void HeapCheck::check_order(uint16_t line, Findings& findings) {
  const History& version = history_[line];
  if (!version.row.ended() || !version.deleter || !version.deleter->committed()) return;
  if (version.never())
    findings.add(line_at(line), "version was deleted by a committed transaction, but its creation was rolled back");
  else if (version.creator && version.creator->running())
    findings.add(line_at(line), "version was deleted by a committed transaction, but its creator still runs");
  const Cts made = version.row.creator.kind() == RowTxnKind::kCommitted ? version.row.creator.cts()
                   : version.creator && version.creator->committed()    ? version.creator->cts
                                                                        : Cts{};
  if (made > kFrozenCts && version.deleter->cts > kFrozenCts && version.deleter->cts < made)
    findings.add(line_at(line), "version was deleted at %llu, before it was created at %llu",
                 shown(version.deleter->cts.value), shown(made.value));
}

// check.chains-of-the-page.
Status HeapCheck::check_chain(uint16_t root, Findings& findings) {
  HeapPage view(copy_);
  const Line first = view.line(root);
  uint16_t line = root;
  if (first.state() == LineState::kRedirect)
    line = uint16_t(first.offset());
  else if (!first.normal() || history_[root].row.heap_only())
    return {};
  while (line != 0 && history_[line].known) {
    if (root_[line] == root) {
      findings.add(line_at(line), "chain of item %u runs in a circle", unsigned(root));
      return {};
    }
    if (root_[line] != 0) {
      findings.add(line_at(line), "version belongs to the chains of item %u and item %u", unsigned(root_[line]),
                   unsigned(root));
      return {};
    }
    root_[line] = root;
    uint16_t next = 0;
    GCL_TRY(check_step(line, &next, findings));
    line = next;
  }
  return {};
}

// From a version to the next of its chain; 0: it is the last.
Status HeapCheck::check_step(uint16_t line, uint16_t* next, Findings& findings) {
  HeapPage view(copy_);
  const History& version = history_[line];
  if (!version.row.chain_goes_on()) return {};
  const uint16_t to = version.row.next_offset();
  bool there = to >= 1 && to <= view.lines() && view.line(to).normal() && history_[to].row.heap_only();
  if (there) {
    auto same = is_successor(txns_, version.row, history_[to].row);
    if (!same) return same.error();
    there = *same;
  }
  if (there)
    *next = to;
  else if (version.deleter && !version.deleter->aborted())
    findings.add(line_at(line), "version was updated to item %u, which is not its successor", unsigned(to));
  return {};
}

// (check.links-lead-to-successors) of versions that were ended after the snapshot, and so stay with what replaced them.
Status HeapCheck::check_link(uint16_t line, Findings& findings) {
  const RowHeader& row = history_[line].row;
  const auto& end = history_[line].deleter;
  if (!end || end->aborted() || !row.ended()) return {};
  if (!row.updated()) {
    if (!row.far() && row.next_offset() != 0 && row.next_offset() != line)
      findings.add(line_at(line), "deleted version names item %u as its successor", unsigned(row.next_offset()));
    return {};
  }
  if (!ended_after(*end, snapshot_) || row.chain_goes_on()) return {};
  const Tid to = row.next(block_);
  PageId page = page_;
  auto found = to.block == block_ ? Result<bool>(true) : find_block(to.block, &page);
  if (!found) return found.error();
  bool same = false;
  if (*found) {
    alignas(8) std::byte other[coherence::kPageSize];
    const std::byte* bytes = copy_;
    if (to.block != block_) {
      GCL_TRY(txns_.pool().copy_page(txns_.session(), page, other));
      bytes = other;
    }
    HeapPage view(bytes);
    if (to.offset >= 1 && view.is_heap() && to.offset <= view.lines() && view.line(to.offset).sane()) {
      const RowHeader next = view.row_header(to.offset);
      auto is = next.heap_only() ? Result<bool>(false) : is_successor(txns_, row, next);
      if (!is) return is.error();
      same = *is;
    }
  }
  if (!same)
    findings.add(line_at(line), "version was updated to item %u of block %u, which is not its successor",
                 unsigned(to.offset), to.block);
  return {};
}

// A block that was not there when the maps were read may have come since.
Result<bool> HeapCheck::find_block(uint32_t block, PageId* page) {
  *page = maps_.page_of(block);
  if (page->valid()) return true;
  Findings told;  // when the maps were checked
  GCL_TRY(maps_.check(told));
  *page = maps_.page_of(block);
  return page->valid();
}

Status HeapCheck::check_entry(Tid tid, const FindingPlace& at, Findings& findings) {
  PageId page;
  auto found = find_block(tid.block, &page);
  if (!found) return found.error();
  if (!*found) {
    findings.add(at, "index entry points to block %u, which the table does not have", tid.block);
    return {};
  }
  for (;;) {
    if (txns_.session().interrupted()) return Errc::kInterrupted;
    auto look = txns_.pool().fix_optimistic(txns_.session(), page);
    if (!look) return look.error();
    const auto header = look->get<PageHeader>(0);
    const bool inside = header.type == PageType::kHeap && tid.offset >= 1 && header.lower <= coherence::kPageSize &&
                        HeapPage::line_offset(tid.offset) < header.lower;
    const Line line = inside ? look->get<Line>(HeapPage::line_offset(tid.offset)) : Line{};
    const auto row = line.sane() ? look->get<RowHeader>(line.offset()) : RowHeader{};
    if (!look->validate()) continue;
    if (line.state() == LineState::kUnused)
      findings.add(at, "index entry points to item %u of block %u, which is unused", unsigned(tid.offset), tid.block);
    else if (line.sane() && row.heap_only())
      findings.add(at, "index entry points to item %u of block %u, a heap-only version", unsigned(tid.offset),
                   tid.block);
    return {};
  }
}

}  // namespace engine

#include "extension/engine/sweep/sweeper.hpp"

#include <algorithm>
#include <span>

#include "bufmgr/mini_transaction.hpp"
#include "extension/engine/heap/heap_page.hpp"
#include "extension/engine/reclaim/reclaim_page.hpp"

namespace engine {

namespace {

constexpr int kPagesAtOnce = 16;
constexpr int kRowsAtOnce = 32;  // of a page, in one mini-transaction
constexpr uint64_t kPagesMin = 4;

struct alignas(8) Cleaned {  // a header is not as long as an array of them needs
  RowHeader header;
  uint16_t line;
};

// As if the version had not been ended.
void take_back_end(RowHeader& row, uint16_t line) {
  row.deleter = {};
  row.set_command(0);
  row.set(line, row.natts(), uint8_t(row.flags() & ~kChainUpdated));
}

}  // namespace

uint64_t Sweeper::pages_max(TxnSystem& txns) {
  return std::max(kPagesMin, txns.pool().pages() / 256 / txns.words().nodes());
}

Result<bool> Sweeper::step() {
  switch (phase_) {
    case Phase::kPass:
      return pass_some();
    case Phase::kWait:
      return forget();
    case Phase::kIdle:
    default:
      return begin();
  }
}

Result<bool> Sweeper::begin() {
  const uint64_t frozen = txns_.frozen();  // before the list: all that is frozen by then is in what is read of it
  auto list = txns_.aborted_pages();
  if (!list) return list.error();
  if (*list <= pages_max_) return false;
  upto_ = frozen;
  assigned_ = txns_.assigned();  // later, so that savepoints of what is frozen are among them
  next_ = PageId::at(coherence::MemoryNodeId{0}, 0);
  phase_ = Phase::kPass;
  return true;
}

Result<bool> Sweeper::pass_some() {
  auto& pool = txns_.pool();
  for (int i = 0; i < kPagesAtOnce; ++i) {
    auto page = pool.next_allocated(txns_.session(), next_);
    if (!page) return page.error();
    if (!page->valid()) {
      const auto moment = txns_.pass_moment();
      if (!moment) return moment.error();
      passed_at_ = *moment;
      phase_ = Phase::kWait;
      return true;
    }
    next_ = *page;
    auto clean_now = clean(*page);
    if (!clean_now) return clean_now;
    if (*clean_now) next_ = *page + 1;
  }
  return true;
}

// An id of ours that the pass concerns, and that was rolled back.
Result<bool> Sweeper::bad(TxnId id) {
  if (id.node() != txns_.node() || id.sequence() > upto_) return false;
  return txns_.was_rolled_back(id);
}

// sweep.begins-when-long.  False: clean it again, there may be more.
Result<bool> Sweeper::clean(PageId page) {
  auto& pool = txns_.pool();
  alignas(8) std::byte copy[coherence::kPageSize];
  GCL_TRY(pool.copy_page(txns_.session(), page, copy));
  HeapPage view(copy);
  if (!view.is_heap()) return true;
  Cleaned rows[kRowsAtOnce];
  int found = 0;
  for (uint16_t line = 1; line <= view.lines() && found < kRowsAtOnce; ++line) {
    if (!view.line(line).normal()) continue;
    RowHeader& row = rows[found].header = view.row_header(line);
    auto maker = row.creator.kind() == RowTxnKind::kInserted ? bad(row.creator.id()) : Result<bool>(false);
    auto ender = row.ended() ? bad(row.deleter.id()) : Result<bool>(false);
    if (!maker || !ender) return !maker ? maker.error() : ender.error();
    if (*maker) row.creator = RowTxn::of(RowTxnKind::kAborted);
    if (*ender) take_back_end(row, line);
    if (*maker || *ender) rows[found++].line = line;
  }
  if (found == 0) return true;
  bufmgr::MiniTransaction change(pool, txns_.session());
  GCL_TRY(change.reserve(kRowsAtOnce * 64));
  auto guard = pool.fix_exclusive(txns_.session(), page);
  if (!guard) return guard.error();
  if (guard->header().version != view.header().version) return false;
  change.join(*guard);
  for (const Cleaned& row : std::span(rows, size_t(found)))
    change.write(*guard, view.line(row.line).offset(), &row.header, kRowHeaderBytes);
  change.commit();
  return false;
}

// sweep.forget-after-readers.
Result<bool> Sweeper::named() {
  alignas(8) std::byte bytes[coherence::kPageSize];
  const auto& list = *reinterpret_cast<const ReclaimPage*>(bytes);
  const auto root = txns_.pool().memory(txns_.session()).load(txns_.words().reclaim_root(txns_.node()));
  if (!root) return root.error();
  for (uint64_t link = *root; link != 0; link = list.next) {
    GCL_TRY(txns_.pool().copy_page(txns_.session(), linked_page(link), bytes));
    if (!is_list_of(list, txns_.node())) return true;  // it is being shortened
    for (const ReclaimRecord& record : list.record)
      if (record.word != 0 && record.by().sequence() <= upto_) return true;
  }
  return names_.any_rolled_back(upto_);
}

Result<bool> Sweeper::forget() {
  GCL_TRY(txns_.truncate_log_now());
  const auto horizon = txns_.refresh_horizon(passed_at_);
  if (!horizon) return horizon.error();
  if (txns_.frozen() < assigned_ || *horizon <= passed_at_) return false;
  auto still = named();
  if (!still) return still;
  if (*still) return false;
  GCL_TRY(txns_.forget_aborted(upto_));
  phase_ = Phase::kIdle;
  ++passes_;
  return true;
}

}  // namespace engine

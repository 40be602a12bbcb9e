// Booking a row: a session that waits for it at another node gets it after a bounded number of transactions
// (heap.book-after-losses, heap.bookings-in-order).
#include <algorithm>

#include "extension/engine/heap/heap.hpp"
#include "extension/engine/heap/page_change.hpp"
#include "extension/engine/heap/version.hpp"

namespace engine {

namespace {

// Versions on other pages that a booking goes after, at a time: while it does they may become more.
constexpr int kPagesFollowed = 8;

// The next version on the same page; unset: none, or no longer the one that the row was updated to.
std::optional<uint16_t> next_here(const ExclusiveGuard& page, const RowHeader& row, Tid tid) {
  const Tid next = row.next(tid.block);
  if (!row.updated() || next.block != tid.block || next == tid || !line_is_row(page, next.offset)) return std::nullopt;
  const RowTxn made = HeapPage(page.bytes()).row_header(next.offset).creator;
  if (made.kind() != RowTxnKind::kInserted || made.id() != row.deleter.id()) return std::nullopt;
  return next.offset;
}

// The place behind all others.
uint32_t place_behind(std::span<const Locker> recorded) {
  uint32_t last = 0;
  for (const Locker& locker : recorded)
    if (locker.booked() && (last == 0 || comes_before(last, locker.place))) last = locker.place;
  return last + 1 == 0 ? 1 : last + 1;
}

}  // namespace

// One page's part of a booking.
struct Heap::BookTry {
  Tid tid;
  Locker locker;
  const Facts& facts;
  TxnId maker{};        // if valid: a row that says another maker is a stranger
  UpdateCheck check{};  // kAsk, kCells: to be resolved first; kGo: done
  Tid next{};           // kGo: the version goes on there; else invalid
};

// On the version that is waited for, and on the newest one, so that no session finds that free in between.  What a
// running transaction has made and ended in between counts only if it rolls back a savepoint; then the row is booked
// anew.
Status Heap::book(Tid tid, RowLock mode, Facts& facts) {
  auto id = txns_.id_for_write();
  if (!id) return id.error();
  BookTry book{.tid = tid, .locker = {.id = *id, .mode = mode, .outer = {}}, .facts = facts};
  for (int pages = 0; pages < kPagesFollowed;) {
    GCL_TRY(book_on_page(book));
    if (book.check.kind == UpdateCheck::kGo) {
      if (!book.next.valid()) return {};
      book.tid = book.next;
      ++pages;
      continue;
    }
    const Status resolved = resolve(book.check, {}, facts, WaitFor::kLock);
    if (!resolved && resolved.error() == Errc::kNoSpace) return {};  // then by chance, as before
    GCL_TRY(resolved);
  }
  return {};
}

Status Heap::book_on_page(BookTry& book) {
  const Tid tid = book.tid;
  book.check = {};
  book.next = {};
  auto page = page_of(tid.block);
  if (!page) return page.error() == Errc::kNotFound ? Status{} : Status{page.error()};
  MiniTransaction change(txns_.pool(), txns_.session());
  GCL_TRY(change.reserve(2 * (kLogForHeader + kLogForLock)));
  auto guard = txns_.pool().fix_exclusive(txns_.session(), *page);
  if (!guard) return guard.error();
  if (!line_is_row(*guard, tid.offset)) return {};
  HeapPage view(guard->bytes());
  RowHeader row = view.row_header(tid.offset);
  if (book.maker.valid() && (row.creator.kind() != RowTxnKind::kInserted || row.creator.id() != book.maker)) return {};
  Tid newest = tid;
  for (auto next = next_here(*guard, row, newest); next; next = next_here(*guard, row, newest)) {
    newest.offset = *next;
    row = view.row_header(*next);
  }
  const Tid at[] = {tid, newest};
  GCL_TRY(put_bookings(book, {at, newest == tid ? size_t{1} : size_t{2}}, *guard, change));
  if (book.check.kind != UpdateCheck::kGo || !row.updated() || !row.far()) return {};
  book.next = row.next(tid.block);
  book.maker = row.deleter.id();
  return {};
}

// Whether a session of this node has booked the version already, or this session has any entry there.
bool Heap::stands_in_line(BookTry& book, std::span<const Locker> recorded) const {
  for (const Locker& other : recorded) {
    if (txns_.current().is_mine(other.id)) return true;
    if (!other.booked() || other.id.node() != txns_.node()) continue;
    const auto status = book.facts.get(txns_, other.id);
    if (!status) book.check = {.kind = UpdateCheck::kAsk, .id = other.id};
    if (!status || status->running()) return true;
  }
  return false;
}

// REQUIRES: the exclusive guard of the versions' page, nothing written yet.
Status Heap::put_bookings(BookTry& book, std::span<const Tid> at, ExclusiveGuard& page, MiniTransaction& change) {
  const uint32_t block = book.tid.block;
  HeapPage view(page.bytes());
  const UpdateCheck make_room{.kind = UpdateCheck::kCells, .block = block, .entries = 2};
  if (!cells_.known(block).valid()) return book.check = make_room, Status{};
  std::vector<Locker> live[2];
  Locker added[2];
  CellPut put[2];
  int puts = 0;
  for (const Tid tid : at) {
    // heap.flag-validates-cells
    if (view.row_header(tid.offset).has_lockers()) GCL_TRY(cells_.read(block, tid.offset, &live[puts]));
    const bool there = stands_in_line(book, live[puts]);
    if (book.check.kind != UpdateCheck::kGo) return {};
    if (there) {
      live[puts].clear();
      continue;
    }
    added[puts] = book.locker;
    added[puts].place = place_behind(live[puts]);
    put[puts] = {tid.offset, live[puts], {&added[puts], 1}};
    ++puts;
  }
  if (puts == 0) return {};
  CellWriter cells;
  auto open = puts == 1 ? cells.open(cells_, block, {put[0]}) : cells.open(cells_, block, {put[0], put[1]});
  if (!open) return open.error();
  if (!*open) return book.check = make_room, Status{};
  change.join(page);
  for (int i = 0; i < puts; ++i) {
    RowHeader row = view.row_header(put[i].line);
    row.set(row.next_offset(), row.natts(), uint8_t(row.flags() | kHasLockers));
    put_ending(change, page, put[i].line, row);
  }
  cells.write(change);
  change.commit();
  return {};
}

}  // namespace engine

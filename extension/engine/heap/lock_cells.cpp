#include "extension/engine/heap/lock_cells.hpp"

#include <algorithm>
#include <cstddef>

#include "extension/engine/heap/page_change.hpp"

namespace engine {

namespace {

constexpr uint32_t entry_at(uint32_t n) { return uint32_t(offsetof(LockPage, entry) + n * sizeof(LockEntry)); }

const LockPage& lock_page(const ExclusiveGuard& guard) { return *reinterpret_cast<const LockPage*>(guard.bytes()); }

PageId page_or_none(uint64_t raw) { return raw == 0 ? PageId{} : PageId{raw}; }

// The used part of a lock page, read without a latch.
Status copy_used(TxnSystem& txns, PageId page, LockPage& to) {
  for (;;) {
    txns.session().next_wait(bufmgr::WaitOrder::kLocks);
    auto optimistic = txns.pool().fix_optimistic(txns.session(), page);
    if (!optimistic) return optimistic.error();
    optimistic->copy(0, &to, offsetof(LockPage, entry));
    to.used = std::min(to.used, LockPage::kEntries);
    optimistic->copy(uint32_t(offsetof(LockPage, entry)), to.entry, uint32_t(to.used * sizeof(LockEntry)));
    if (!optimistic->validate()) continue;
    return to.header.type == bufmgr::PageType::kLockCells ? Status{} : Status{Errc::kCorrupt};
  }
}

uint32_t free_places(const LockPage& page) {
  uint32_t free = LockPage::kEntries - page.used;
  for (uint32_t n = 0; n < page.used; ++n) free += page.entry[n].id == 0;
  return free;
}

Result<PageId> read_link(TxnSystem& txns, PageId page, uint32_t offset) {
  for (;;) {
    auto optimistic = txns.pool().fix_optimistic(txns.session(), page);
    if (!optimistic) return optimistic.error();
    PageId link = page_or_none(optimistic->get<uint64_t>(offset));
    if (optimistic->validate()) return link;
  }
}

constexpr uint32_t first_at(uint32_t block) {
  return uint32_t(offsetof(LockDirectory, first) + block % kExtentPages * sizeof(uint64_t));
}

constexpr uint32_t directory_at(uint32_t extent) {
  return uint32_t(offsetof(ExtentMapPage, extent) + extent * sizeof(MapExtent) + offsetof(MapExtent, locks));
}

}  // namespace

Result<PageId> LockCells::directory_of(const ExtentPlace& where) {
  for (;;) {
    auto optimistic = txns_.pool().fix_optimistic(txns_.session(), where.map);
    if (!optimistic) return optimistic.error();
    uint64_t raw = 0;
    optimistic->copy(directory_at(where.extent), &raw, sizeof MapExtent::locks);
    if (optimistic->validate()) return page_or_none(raw);
  }
}

Status LockCells::remember(uint32_t block, PageId first) {
  PageId* known = first_.make(block);
  if (known == nullptr) return Errc::kNoMemory;
  *known = first;
  return {};
}

Status LockCells::find(uint32_t block, const ExtentPlace& where) {
  auto directory = directory_of(where);
  if (!directory) return directory.error();
  if (!directory->valid()) return Errc::kNotFound;
  auto first = read_link(txns_, *directory, first_at(block));
  if (!first) return first.error();
  if (!first->valid()) return Errc::kNotFound;
  return remember(block, *first);
}

Status LockCells::read(uint32_t block, uint16_t line, std::vector<Locker>* to) {
  alignas(8) LockPage copy;
  for (PageId page = known(block); page.valid(); page = page_or_none(copy.next)) {
    GCL_TRY(copy_used(txns_, page, copy));
    for (uint32_t n = 0; n < copy.used; ++n)
      if (copy.entry[n].id != 0 && copy.entry[n].line == line) to->push_back(copy.entry[n].locker());
  }
  return {};
}

Status LockCells::make_room(uint32_t block, const ExtentPlace& where, uint32_t entries) {
  VERIFY(entries <= LockPage::kEntries);
  while (!known(block).valid()) {
    auto directory = directory_of(where);
    if (!directory) return directory.error();
    if (!directory->valid()) {
      GCL_TRY(add_directory(where));
      continue;
    }
    auto first = read_link(txns_, *directory, first_at(block));
    if (!first) return first.error();
    GCL_TRY(first->valid() ? remember(block, *first) : add_page(*directory, first_at(block)));
  }
  alignas(8) LockPage copy;
  for (PageId page = known(block);; page = PageId{copy.next}) {
    GCL_TRY(copy_used(txns_, page, copy));
    uint32_t free = free_places(copy);
    if (free >= entries) return {};
    auto swept = sweep(page, copy);
    if (!swept) return swept.error();
    if (free + *swept >= entries) return {};
    if (copy.next == 0) return add_page(page, offsetof(LockPage, next));
  }
}

// Puts a fresh lock page, or directory, where `to` has none at `offset` yet.
Status LockCells::add_page(PageId to, uint32_t offset) {
  auto& pool = txns_.pool();
  auto& session = txns_.session();
  auto fresh = pool.allocate(session, 1);
  if (!fresh) return fresh.error();
  auto link = [&]() -> Result<bool> {
    MiniTransaction change(pool, session);
    GCL_TRY(change.reserve(coherence::kPageSize + 64));
    auto from = pool.fix_exclusive(session, to);
    if (!from) return from.error();
    uint64_t now = 0;
    std::memcpy(&now, from->bytes() + offset, sizeof MapExtent::locks);  // page ids fit six bytes
    if (now != 0) return false;                                          // another session was faster
    session.next_wait(bufmgr::WaitOrder::kNew);
    auto page = pool.fix_exclusive(session, *fresh);
    if (!page) return page.error();
    change.join(*from);
    change.join(*page);
    change.format(*page, bufmgr::PageType::kLockCells, relation_);
    change.write(*from, offset, &fresh->raw, sizeof MapExtent::locks);
    change.commit();
    return true;
  };
  auto linked = link();
  if (linked && *linked) return {};
  (void)pool.free(session, *fresh, 1);  // or it leaks, as in a crash
  return linked ? Status{} : Status{linked.error()};
}

Status LockCells::add_directory(const ExtentPlace& where) { return add_page(where.map, directory_at(where.extent)); }

// Whether a lock does not count any more, nor ever will.
Result<bool> LockCells::over(const Locker& locker) {
  for (TxnId id = locker.id; id.valid();) {
    if (txns_.current().is_mine(id)) return false;
    auto status = txns_.status(id);
    if (!status) return status.error();
    if (status->running()) return false;
    if (status->committed() || !locker.outer.held()) return true;
    id = status->parent;
  }
  return true;
}

// Frees the places of ended ids.  Returns how many.
Result<uint32_t> LockCells::sweep(PageId page, const LockPage& copy) {
  bool gone[LockPage::kEntries] = {};
  uint32_t count = 0;
  Locker last;
  bool last_over = false;
  for (uint32_t n = 0; n < copy.used; ++n) {
    if (copy.entry[n].id == 0) continue;
    Locker locker = copy.entry[n].locker();
    if (locker != last) {  // a bulk load has many in a row
      auto ended = over(locker);
      if (!ended) return ended.error();
      last = locker;
      last_over = *ended;
    }
    gone[n] = last_over;
    count += last_over;
  }
  if (count == 0) return 0u;
  MiniTransaction change(txns_.pool(), txns_.session());
  GCL_TRY(change.reserve(1024));
  auto guard = txns_.pool().fix_exclusive(txns_.session(), page);
  if (!guard) return guard.error();
  const LockPage& now = lock_page(*guard);
  count = 0;
  for (uint32_t n = 0; n < copy.used; ++n) count += gone[n] = gone[n] && now.entry[n] == copy.entry[n];
  if (count == 0) return 0u;
  uint32_t used = now.used;
  while (used > 0 && (now.entry[used - 1].id == 0 || (used <= copy.used && gone[used - 1]))) --used;
  change.join(*guard);
  for (uint32_t n = 0; n < copy.used; ++n)
    if (gone[n]) change.zero(*guard, entry_at(n), sizeof(LockEntry));
  change.set(*guard, offsetof(LockPage, used), used);
  change.commit();
  return count;
}

Result<uint64_t> LockCells::pages(TxnSystem& txns, PageId directory) {
  uint64_t count = 1;
  for (uint32_t block = 0; block < kExtentPages; ++block) {
    auto page = read_link(txns, directory, first_at(block));
    for (; page && page->valid(); page = read_link(txns, *page, offsetof(LockPage, next))) ++count;
    if (!page) return page.error();
  }
  return count;
}

// Whether the entry's place may be taken by what is put.
bool CellWriter::gives_way(const LockEntry& entry) const {
  if (entry.id == 0) return true;
  for (int i = 0; i < puts_; ++i) {
    if (put_[i].line != entry.line) continue;
    auto same = [&](const Locker& locker) { return locker.id.raw == entry.id; };
    return std::none_of(put_[i].live.begin(), put_[i].live.end(), same);
  }
  return false;
}

uint32_t CellWriter::room() const {
  const LockPage& page = lock_page(guard_);
  uint32_t room = LockPage::kEntries - page.used;
  for (uint32_t n = 0; n < page.used; ++n) room += gives_way(page.entry[n]);
  return room;
}

Result<bool> CellWriter::open(LockCells& cells, uint32_t block, std::initializer_list<CellPut> puts) {
  puts_ = 0;
  size_t wanted = 0;
  for (const CellPut& put : puts) {
    put_[puts_++] = put;
    wanted += put.add.size();
  }
  auto& txns = cells.txns_;
  for (PageId page = cells.known(block); page.valid();) {
    txns.session().next_wait(bufmgr::WaitOrder::kLocks);
    auto guard = txns.pool().fix_exclusive(txns.session(), page);
    if (!guard) return guard.error();
    guard_ = guard.take();
    if (guard_.header().type != bufmgr::PageType::kLockCells) return Errc::kCorrupt;
    if (room() >= wanted) return true;
    page = page_or_none(lock_page(guard_).next);
    guard_.release();
  }
  return false;
}

void CellWriter::write(MiniTransaction& change) {
  change.join(guard_);
  const LockPage& page = lock_page(guard_);
  const uint32_t used_before = page.used;
  uint32_t used = used_before, n = 0;
  for (int i = 0; i < puts_; ++i) {
    for (const Locker& locker : put_[i].add) {
      while (n < used_before && !gives_way(page.entry[n])) ++n;
      change.set(guard_, entry_at(n), LockEntry::of(put_[i].line, locker));
      if (++n > used) used = n;
    }
  }
  // The rest of what gave way (heap.ended-cells-go).
  for (; n < used_before; ++n)
    if (page.entry[n].id != 0 && gives_way(page.entry[n])) change.zero(guard_, entry_at(n), sizeof(LockEntry));
  if (used != used_before) change.set(guard_, offsetof(LockPage, used), used);
}

}  // namespace engine

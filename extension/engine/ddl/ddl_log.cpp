#include "extension/engine/ddl/ddl_log.hpp"

#include <algorithm>
#include <cstring>

#include "bufmgr/mini_transaction.hpp"
#include "extension/engine/ddl/ddl_log_root.hpp"

namespace engine {
namespace {

using bufmgr::kPageBody;
using bufmgr::PageType;
using coherence::Errc;
using coherence::kPageSize;
using coherence::PageId;
using coherence::Result;
using coherence::Status;

struct Chunk {
  uint64_t next_chunk;  // raw PageId; ~0: the last of its entry
  uint64_t next_entry;  // in the first chunk of an entry; set when the next entry is linked
  uint64_t number;      // 0 until linked
  uint64_t txn;
  uint32_t total;  // bytes of the entry
  uint32_t bytes;  // of this chunk
};

constexpr uint64_t kNone = ~uint64_t{0};
constexpr uint32_t kChunkBody = kPageBody + sizeof(Chunk);
constexpr uint32_t kChunkBytes = kPageSize - kChunkBody;

struct alignas(8) PageCopy {
  std::byte bytes[kPageSize];
  template <class T>
  T get(uint32_t offset) const {
    T value;
    std::memcpy(&value, bytes + offset, sizeof value);
    return value;
  }
};

}  // namespace

Status DdlLog::open_root(PageId* root) {
  const auto known = channel_.log_root();
  if (!known) return known.error();
  *root = *known;
  if (root->valid()) return {};
  auto page = pool_.allocate(session_, 1, bufmgr::PageUse::kHousekeeping);
  if (!page) return page.error();
  {
    bufmgr::MiniTransaction change(pool_, session_);
    GCL_TRY(change.reserve(kPageSize));
    auto guard = pool_.fix_exclusive(session_, *page);
    if (!guard) return guard.error();
    change.join(*guard);
    change.format(*guard, PageType::kLogRoot, 0);
    change.set(*guard, kPageBody, DdlLogRoot{0, kNone, kNone, 0, 0});
    change.commit();
  }
  if (!channel_.set_log_root(*page)) GCL_TRY(pool_.free(session_, *page, 1));
  const auto linked = channel_.log_root();
  if (!linked) return linked.error();
  *root = *linked;
  return {};
}

Result<PageId> DdlLog::write_chunk(std::span<const std::byte> chunk, PageId next, uint64_t txn, uint32_t total) {
  auto page = pool_.allocate(session_, 1, bufmgr::PageUse::kHousekeeping);
  if (!page) return page.error();
  bufmgr::MiniTransaction change(pool_, session_);
  GCL_TRY(change.reserve(2 * kPageSize));
  auto guard = pool_.fix_exclusive(session_, *page);
  if (!guard) return guard.error();
  change.join(*guard);
  change.format(*guard, PageType::kLog, 0);
  change.set(*guard, kPageBody, Chunk{next.raw, kNone, 0, txn, total, uint32_t(chunk.size())});
  if (!chunk.empty()) change.write(*guard, kChunkBody, chunk.data(), uint32_t(chunk.size()));
  change.commit();
  return *page;
}

// The chain is written back to front, so that every page knows its successor; the front is linked last
// (ddl_log.entry-linked-whole).  A failure leaves pages that nothing refers to.
Result<uint64_t> DdlLog::append(std::span<const std::byte> record, uint64_t txn) {
  PageId root;
  GCL_TRY(open_root(&root));
  PageId next;
  uint64_t pages = 0;
  size_t begin = record.empty() ? 0 : (record.size() - 1) / kChunkBytes * kChunkBytes;
  for (;; begin -= kChunkBytes) {
    const auto chunk = record.subspan(begin, std::min<size_t>(kChunkBytes, record.size() - begin));
    auto page = write_chunk(chunk, next, txn, uint32_t(record.size()));
    if (!page) return page.error();
    next = *page;
    ++pages;
    if (begin == 0) break;
  }
  auto number = link(root, next, pages);
  if (number) channel_.set_log_entries(*number);
  return number;
}

Result<uint64_t> DdlLog::link(PageId root, PageId entry, uint64_t pages) {
  bufmgr::MiniTransaction change(pool_, session_);
  GCL_TRY(change.reserve(1024));
  auto top = pool_.fix_exclusive(session_, root);
  if (!top) return top.error();
  DdlLogRoot now;
  std::memcpy(&now, top->bytes() + kPageBody, sizeof now);
  bufmgr::ExclusiveGuard before;
  if (now.last != kNone) {
    session_.next_wait(bufmgr::WaitOrder::kRight);
    auto guard = pool_.fix_exclusive(session_, PageId{now.last});
    if (!guard) return guard.error();
    before = guard.take();
  }
  session_.next_wait(bufmgr::WaitOrder::kRight);  // the list's new end
  auto fresh = pool_.fix_exclusive(session_, entry);
  if (!fresh) return fresh.error();

  ++now.count;
  change.join(*top);
  change.join(*fresh);
  if (before) {
    change.join(before);
    change.set(before, kPageBody + offsetof(Chunk, next_entry), entry.raw);
  }
  if (now.first == kNone) now.first = entry.raw;
  now.last = entry.raw;
  now.pages += pages;
  change.set(*top, kPageBody, now);
  change.set(*fresh, kPageBody + offsetof(Chunk, number), now.count);
  change.commit();
  return uint64_t(now.count);
}

Status DdlLog::load(PageId page, DdlLogEntry* entry) {
  *entry = DdlLogEntry{};
  if (!page.valid()) return {};
  PageCopy copy;
  GCL_TRY(pool_.copy_page(session_, page, copy.bytes));
  const auto chunk = copy.get<Chunk>(kPageBody);
  *entry = {page, PageId{chunk.next_entry}, chunk.number, chunk.txn, chunk.total};
  return {};
}

Status DdlLog::extent(DdlLogExtent* extent) {
  *extent = DdlLogExtent{};
  const auto root = channel_.log_root();
  if (!root) return root.error();
  if (!root->valid()) return {};
  PageCopy copy;
  GCL_TRY(pool_.copy_page(session_, *root, copy.bytes));
  const auto now = copy.get<DdlLogRoot>(kPageBody);
  *extent = {now.count, now.removed, now.pages};
  return {};
}

// ddl_log.read-then-ask-root.  Asked when the page was read: it is unlinked before it is freed.
Result<bool> DdlLog::is_there(uint64_t number) {
  DdlLogExtent now;
  GCL_TRY(extent(&now));
  return number > now.removed && number <= now.count;
}

// Again, if it has been removed meanwhile.
Status DdlLog::first(DdlLogEntry* entry) {
  for (;;) {
    *entry = DdlLogEntry{};
    const auto root = channel_.log_root();
    if (!root) return root.error();
    if (!root->valid()) return {};
    PageCopy copy;
    GCL_TRY(pool_.copy_page(session_, *root, copy.bytes));
    const auto now = copy.get<DdlLogRoot>(kPageBody);
    GCL_TRY(load(PageId{now.first}, entry));
    if (!entry->valid()) return {};
    auto there = is_there(now.removed + 1);
    if (!there) return there.error();
    if (*there) return {};
  }
}

Status DdlLog::next(DdlLogEntry* entry) {
  const uint64_t number = entry->number + 1;
  if (!entry->following.valid()) {  // when it was read
    DdlLogEntry again;
    GCL_TRY(load(entry->page, &again));
    auto there = is_there(entry->number);
    if (!there) return there.error();
    if (!*there) return first(entry);
    entry->following = again.following;
  }
  GCL_TRY(load(entry->following, entry));
  if (!entry->valid()) return {};
  auto there = is_there(number);
  if (!there) return there.error();
  return *there ? Status{} : first(entry);
}

Status DdlLog::read(const DdlLogEntry& entry, std::byte* to) {
  PageId page = entry.page;
  uint32_t done = 0;
  while (page.valid()) {
    PageCopy copy;
    GCL_TRY(pool_.copy_page(session_, page, copy.bytes));
    auto there = is_there(entry.number);
    if (!there) return there.error();
    if (!*there) return Errc::kNotFound;
    const auto chunk = copy.get<Chunk>(kPageBody);
    if (chunk.bytes > kChunkBytes || chunk.bytes > entry.bytes - done) return Errc::kCorrupt;
    if (chunk.bytes > 0) std::memcpy(to + done, copy.bytes + kChunkBody, chunk.bytes);  // `to` of an empty one is null
    done += chunk.bytes;
    page = PageId{chunk.next_chunk};
  }
  return done == entry.bytes ? Status{} : Status{Errc::kCorrupt};
}

// The oldest entry, if all have applied it; or none.  A node that becomes known reads the root afterwards
// (ddl_log.known-node-first), and this reads behind the root's latch which nodes are known: one sees the other.
Result<PageId> DdlLog::unlink(PageId root) {
  bufmgr::MiniTransaction change(pool_, session_);
  GCL_TRY(change.reserve(1024));
  auto top = pool_.fix_exclusive(session_, root);
  if (!top) return top.error();
  DdlLogRoot now;
  std::memcpy(&now, top->bytes() + kPageBody, sizeof now);
  coherence::NodeId behind;
  const DdlApplied all = channel_.applied_by_all(&behind);
  if (now.first == kNone || !all.known() || now.removed + 1 > all.number()) return PageId{};
  session_.next_wait(bufmgr::WaitOrder::kRight);
  auto oldest = pool_.fix_shared(session_, PageId{now.first});
  if (!oldest) return oldest.error();
  Chunk chunk;
  std::memcpy(&chunk, oldest->bytes() + kPageBody, sizeof chunk);
  oldest->release();
  const PageId page{now.first};
  now.first = chunk.next_entry;
  if (now.first == kNone) now.last = kNone;
  ++now.removed;
  now.pages -= chunk.total == 0 ? 1 : (chunk.total + kChunkBytes - 1) / kChunkBytes;
  change.join(*top);
  change.set(*top, kPageBody, now);
  change.commit();
  return page;
}

Status DdlLog::wipe(PageId page) {
  bufmgr::MiniTransaction change(pool_, session_);
  GCL_TRY(change.reserve(1024));
  auto guard = pool_.fix_exclusive(session_, page);
  if (!guard) return guard.error();
  change.join(*guard);
  change.format(*guard, PageType::kLog, 0);
  change.commit();
  return {};
}

// Records may hold secrets, and a free page is not zeroed before it is taken.
Status DdlLog::free_chain(PageId page) {
  while (page.valid()) {
    PageCopy copy;
    GCL_TRY(pool_.copy_page(session_, page, copy.bytes));
    GCL_TRY(wipe(page));
    GCL_TRY(pool_.free(session_, page, 1));
    page = PageId{copy.get<Chunk>(kPageBody).next_chunk};
  }
  return {};
}

Status DdlLog::remove_applied() {
  const auto root = channel_.log_root();
  if (!root) return root.error();
  while (root->valid()) {
    auto page = unlink(*root);
    if (!page) return page.error();
    if (!page->valid()) break;
    GCL_TRY(free_chain(*page));
  }
  return {};
}

}  // namespace engine

#include "bufmgr/mini_transaction.hpp"

#include <algorithm>
#include <cstring>

#include "bufmgr/buffer_pool.hpp"
#include "bufmgr/page_provider.hpp"
#include "bufmgr/session.hpp"

namespace bufmgr {

using coherence::Errc;
using coherence::Lsn;
using coherence::Status;

namespace {

constexpr uint32_t kShapeMax = MiniTransaction::kRecordShapeMax;
constexpr uint32_t kRingWaitMs = 5;
// Ranges nearer than this are logged as one: a range costs its offset and length, and a branch in redo.
constexpr uint32_t kGapMax = 4;

void add_bits(uint64_t dirty[2], uint32_t offset, uint32_t bytes) {
  for (uint32_t bit = offset / 64; bit <= (offset + bytes - 1) / 64; ++bit) dirty[bit / 64] |= uint64_t{1} << bit % 64;
}

// How many bytes at the beginnings, or at the ends, of two runs are equal; at most `count`.
uint32_t equal_at_start(const std::byte* a, const std::byte* b, uint32_t count) {
  uint32_t equal = 0;
  while (equal + 8 <= count && std::memcmp(a + equal, b + equal, 8) == 0) equal += 8;
  while (equal < count && a[equal] == b[equal]) ++equal;
  return equal;
}
uint32_t equal_at_end(const std::byte* a_end, const std::byte* b_end, uint32_t count) {
  uint32_t equal = 0;
  while (equal + 8 <= count && std::memcmp(a_end - equal - 8, b_end - equal - 8, 8) == 0) equal += 8;
  while (equal < count && a_end[-1 - ptrdiff_t(equal)] == b_end[-1 - ptrdiff_t(equal)]) ++equal;
  return equal;
}

}  // namespace

MiniTransaction::~MiniTransaction() {
  VERIFY(ranges_ == 0 && copies_ == 0);  // bufmgr.unwritten-may-end
  end_reservation(reserved_);
}

void MiniTransaction::end_reservation(uint64_t bytes) {
  // release_all() may have returned it already.
  const uint64_t mine = std::min(bytes, session_.reserved_);
  session_.reserved_ -= mine;
  reserved_ -= bytes;
  if (mine != 0) pool_.ring_.give_back(mine);
}

Status MiniTransaction::reserve(uint32_t bytes) {
  VERIFY(session_.held_ == 0);
  const uint64_t wanted = bytes + (reserved_ == 0 ? kShapeMax : 0);
  RedoRing& ring = pool_.ring_;
  for (int round = 0;; ++round) {
    const uint32_t seen = ring.moved();
    if (ring.try_reserve(wanted)) break;
    if (round == 0) session_.counts_.add(Count::kRingWaits);
    if (pool_.fenced()) return Errc::kFenced;
    if (PageProvider(pool_, session_).shorten_ring()) continue;
    if (session_.interrupted()) return Errc::kInterrupted;
    session_.interrupts_.waits(coherence::Wait::kRedoRing);
    ring.wait_moved(seen, kRingWaitMs);
    session_.interrupts_.waits(coherence::Wait::kNone);
  }
  reserved_ += wanted;
  session_.reserved_ += wanted;
  if (ring.used() >= PageProvider::ring_mark(ring)) pool_.call_provider();
  return {};
}

int MiniTransaction::joined(const ExclusiveGuard& page) const {
  for (int i = 0; i < pages_; ++i) {
    if (joined_[i].line == page.line_) return i;
  }
  VERIFY(!"the page was not joined");
  return -1;
}

void MiniTransaction::join(ExclusiveGuard& page) {
  VERIFY(page && reserved_ != 0 && pages_ < kMiniPagesMax);
  joined_[pages_++] = {page.line_, page.bytes_, page.id_, {0, 0}};
}

std::byte* MiniTransaction::note(const ExclusiveGuard& page, uint32_t offset, uint32_t bytes, bool zero) {
  const int index = joined(page);
  // Only commit() writes the version.
  VERIFY(offset >= sizeof(PageHeader::version) && offset <= kPageSize && bytes <= kPageSize - offset);
  if (bytes != 0) {
    add_bits(joined_[index].dirty, offset, bytes);
    const Range fresh{uint8_t(index), zero, uint16_t(offset), uint16_t(bytes)};
    if (!absorb(fresh)) {
      if (ranges_ == kMiniRangesMax) make_room();
      range_[ranges_++] = fresh;
    }
  }
  return joined_[index].bytes + offset;
}

// Lets an old range take in the fresh one.  commit() reads all bytes, so overlapping is harmless; only a zeroed range
// must not swallow, nor be swallowed by, bytes it does not describe.
bool MiniTransaction::absorb(const Range& fresh) {
  for (int i = ranges_; i-- > 0;) {
    Range& old = range_[i];
    if (old.page != fresh.page) continue;
    const bool inside = old.offset <= fresh.offset && fresh.end() <= old.end();
    if (fresh.zero) {
      if (inside) return true;  // the old one reads zeros at commit, or is zero
      continue;
    }
    if (old.zero) {
      if (old.touches(fresh.offset, fresh.end())) return false;  // comes after it, in its own range
      continue;
    }
    if (fresh.offset > old.end() + kGapMax || old.offset > fresh.end() + kGapMax) continue;
    const uint32_t from = std::min(old.offset, fresh.offset), to = std::max(old.end(), fresh.end());
    old.offset = uint16_t(from);
    old.bytes = uint16_t(to - from);
    return true;
  }
  return false;
}

// Joins the two successive ranges of one page that together are smallest; what lies between is logged as it is.
void MiniTransaction::make_room() {
  int first = -1, second = -1;
  uint32_t least = ~0u;
  for (int i = 0; i < ranges_; ++i) {
    int next = i + 1;
    while (next < ranges_ && range_[next].page != range_[i].page) ++next;
    if (next == ranges_) continue;
    const uint32_t span =
        std::max(range_[i].end(), range_[next].end()) - std::min(range_[i].offset, range_[next].offset);
    if (span >= least) continue;
    least = span;
    first = i;
    second = next;
  }
  VERIFY(first >= 0);  // there are more ranges than pages
  const Range &a = range_[first], &b = range_[second];
  const uint32_t from = std::min(a.offset, b.offset), to = std::max(a.end(), b.end());
  range_[first] = {a.page, false, uint16_t(from), uint16_t(to - from)};
  std::move(range_ + second + 1, range_ + ranges_, range_ + second);
  --ranges_;
}

void MiniTransaction::write(ExclusiveGuard& page, uint32_t offset, const void* from, uint32_t bytes) {
  std::memmove(note(page, offset, bytes, false), from, bytes);
}

void MiniTransaction::zero(ExclusiveGuard& page, uint32_t offset, uint32_t bytes) {
  std::memset(note(page, offset, bytes, true), 0, bytes);
}

void MiniTransaction::update(ExclusiveGuard& page, uint32_t offset, const void* from, uint32_t bytes) {
  VERIFY(offset <= kPageSize && bytes <= kPageSize - offset);
  const auto* fresh = static_cast<const std::byte*>(from);
  const std::byte* const old = page.bytes_ + offset;
  const uint32_t skip = equal_at_start(fresh, old, bytes);
  const uint32_t keep = bytes - skip - equal_at_end(fresh + bytes, old + bytes, bytes - skip);
  write(page, offset + skip, fresh + skip, keep);
}

void MiniTransaction::write_like(ExclusiveGuard& page, uint32_t offset, const void* from, uint32_t bytes, uint32_t like,
                                 uint32_t like_bytes) {
  VERIFY(like <= kPageSize && like_bytes <= kPageSize - like);
  VERIFY(offset + bytes <= like || like + like_bytes <= offset);
  const auto* fresh = static_cast<const std::byte*>(from);
  const std::byte* const old = page.bytes_ + like;
  const uint32_t common = std::min(bytes, like_bytes);
  uint32_t start = equal_at_start(fresh, old, common);
  uint32_t end = equal_at_end(fresh + bytes, old + like_bytes, common - start);
  if (start < kMiniCopyMin || !note_copy(page, offset, like, start)) start = 0;
  if (end < kMiniCopyMin || !note_copy(page, offset + bytes - end, like + like_bytes - end, end)) end = 0;
  std::memmove(note(page, offset + start, bytes - start - end, false), fresh + start, bytes - start - end);
  std::memcpy(page.bytes_ + offset, fresh, start);
  std::memcpy(page.bytes_ + offset + bytes - end, fresh + bytes - end, end);
}

void MiniTransaction::move(ExclusiveGuard& page, uint32_t to, uint32_t from, uint32_t bytes) {
  VERIFY(from <= kPageSize && bytes <= kPageSize - from);
  if (bytes < kMiniCopyMin || !note_copy(page, to, from, bytes)) note(page, to, bytes, false);
  std::memmove(page.bytes_ + to, page.bytes_ + from, bytes);
}

// Notes that `bytes` bytes at `to` become those at `from`.  False: that must be logged as bytes.  Redo copies before
// all else (log.copies-come-first): so nothing but copies may have changed the source, and no earlier zeroing may touch
// the destination.  (Bytes that were written there before are read at commit, as they are then.)
bool MiniTransaction::note_copy(const ExclusiveGuard& page, uint32_t to, uint32_t from, uint32_t bytes) {
  const int index = joined(page);
  VERIFY(to >= sizeof(PageHeader::version) && to <= kPageSize && bytes <= kPageSize - to);
  if (copies_ == kMiniCopiesMax || from < sizeof(PageHeader::version)) return false;
  for (int i = 0; i < ranges_; ++i) {
    if (range_[i].page != index) continue;
    if (range_[i].touches(from, from + bytes) || (range_[i].zero && range_[i].touches(to, to + bytes))) return false;
  }
  add_bits(joined_[index].dirty, to, bytes);
  copy_[copies_++] = {uint8_t(index), uint16_t(to), uint16_t(from), uint16_t(bytes)};
  return true;
}

std::byte* MiniTransaction::edit(ExclusiveGuard& page, uint32_t offset, uint32_t bytes) {
  return note(page, offset, bytes, false);
}

void MiniTransaction::format(ExclusiveGuard& page, PageType type, uint32_t relation, uint16_t special_bytes) {
  PageHeader header{};
  header.checkpoint = page.header().checkpoint;
  header.relation = relation;
  header.type = type;
  header.special = uint16_t(kPageSize - special_bytes);
  header.lower = kPageBody;
  header.upper = header.special;
  constexpr uint32_t kAfterVersion = sizeof header.version;
  zero(page, kAfterVersion, kPageSize - kAfterVersion);
  if (type == PageType::kUnused) return;
  write(page, kAfterVersion, reinterpret_cast<std::byte*>(&header) + kAfterVersion, sizeof header - kAfterVersion);
}

void MiniTransaction::commit() {
  // A joined page that was not changed keeps its version.
  int changed = 0;
  for (int p = 0; p < pages_; ++p) {
    const bool touched = (joined_[p].dirty[0] | joined_[p].dirty[1]) != 0;
    if (touched && changed != p) {
      joined_[changed] = joined_[p];
      for (int i = 0; i < ranges_; ++i) {
        if (range_[i].page == p) range_[i].page = uint8_t(changed);
      }
      for (int i = 0; i < copies_; ++i) {
        if (copy_[i].page == p) copy_[i].page = uint8_t(changed);
      }
    }
    changed += touched;
  }
  pages_ = uint8_t(changed);
  if (pages_ == 0) return end_reservation(reserved_);

  VERIFY(record_bound() <= kMiniRecordMax);
  const std::span<std::byte> to_log = build_record(session_.record_.get());
  std::span<std::byte> framed = to_log;
  if (copies_ != 0) {
    spell_out_copies();
    framed = build_record(session_.record_.get() + kMiniRecordMax);
  }
  if (framed.size() > reserved_) session_.counts_.add(Count::kOverdrafts);

  LogGate& gate = pool_.gate_;
  gate.announce(session_.id());
  const uint64_t sequence = pool_.ring_.append(framed, reserved_);
  session_.redo_end_ = sequence + framed.size();
  session_.reserved_ -= std::min(session_.reserved_, reserved_);
  reserved_ = 0;
  const std::span<const std::byte> record = record_for_log(to_log, sequence);  // the ring has its own by now
  const Lsn lsn = session_.log_.append(record);
  gate.appended(lsn);
  uint64_t dirtied = 0;
  for (int p = 0; p < pages_; ++p) {
    Joined& page = joined_[p];
    ++reinterpret_cast<PageHeader*>(page.bytes)->version;
    page.dirty[0] |= 1;  // the header
    dirtied += !page.line->is_dirty();
    page.line->note_change(page.dirty, lsn, sequence);
    pool_.dirty_.list(pool_.node_->index_of(*page.line), sequence);  // the first change, if it is not listed yet
  }
  gate.withdraw(session_.id());
  session_.counts_.add(Count::kMiniTransactions);
  session_.counts_.add(Count::kRedoBytes, record.size());
  if (dirtied != 0) session_.note_dirtied(dirtied);
  pages_ = 0;
  ranges_ = 0;
  copies_ = 0;
}

}  // namespace bufmgr

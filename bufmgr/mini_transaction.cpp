#include "bufmgr/mini_transaction.hpp"

#include <algorithm>
#include <cstring>

#include "bufmgr/buffer_pool.hpp"
#include "bufmgr/log/record.hpp"
#include "bufmgr/page_provider.hpp"
#include "bufmgr/session.hpp"

namespace bufmgr {

using coherence::Errc;
using coherence::Lsn;
using coherence::Status;

namespace {

constexpr uint32_t kShapeMax =
    sizeof(RecordHeader) + kMiniPagesMax * (sizeof(RecordPage) + 7) + kMiniRangesMax * sizeof(RecordRange);
static_assert(kShapeMax + kMiniPagesMax * kPageSize <= kMiniRecordMax);
constexpr uint32_t kRingWaitMs = 5;
// Ranges nearer than this are logged as one: a range costs its header and a branch in redo.
constexpr uint32_t kGapMax = 8;

constexpr uint32_t up8(uint32_t bytes) { return (bytes + 7) & ~7u; }

void add_bits(uint64_t dirty[2], uint32_t offset, uint32_t bytes) {
  for (uint32_t bit = offset / 64; bit <= (offset + bytes - 1) / 64; ++bit) dirty[bit / 64] |= uint64_t{1} << bit % 64;
}

}  // namespace

MiniTransaction::~MiniTransaction() {
  VERIFY(ranges_ == 0);  // bufmgr.unwritten-may-end
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
  const uint64_t wanted = up8(bytes) + (reserved_ == 0 ? kShapeMax : 0);
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
      if (fresh.offset < old.end() && old.offset < fresh.end()) return false;  // comes after it, in its own range
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

void MiniTransaction::move(ExclusiveGuard& page, uint32_t to, uint32_t from, uint32_t bytes) {
  VERIFY(from <= kPageSize && bytes <= kPageSize - from);
  std::memmove(note(page, to, bytes, false), page.bytes_ + from, bytes);
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

uint32_t MiniTransaction::build_record(std::byte* to) const {
  std::byte* at = to + sizeof(RecordHeader);
  for (int p = 0; p < pages_; ++p) {
    auto* page = reinterpret_cast<RecordPage*>(at);
    const auto* header = reinterpret_cast<const PageHeader*>(joined_[p].bytes);
    *page = {joined_[p].id.raw, header->version + 1, 0, 0, 0};
    auto* range = reinterpret_cast<RecordRange*>(page + 1);
    for (int i = 0; i < ranges_; ++i) {
      if (range_[i].page != p) continue;
      *range++ = {range_[i].offset, uint16_t(range_[i].bytes | (range_[i].zero ? RecordRange::kZero : 0))};
      ++page->ranges;
    }
    at = reinterpret_cast<std::byte*>(range);
    for (int i = 0; i < ranges_; ++i) {
      if (range_[i].page != p || range_[i].zero) continue;
      std::memcpy(at, joined_[p].bytes + range_[i].offset, range_[i].bytes);
      at += range_[i].bytes;
      page->data_bytes += range_[i].bytes;
    }
    for (; (at - to) % 8 != 0; ++at) *at = std::byte{0};
  }
  const auto bytes = uint32_t(at - to);
  RecordHeader header{};
  header.magic = RecordHeader::kMagic;
  header.bytes = bytes;
  header.node = pool_.node().value;
  header.pages = pages_;
  std::memcpy(to, &header, sizeof header);
  return bytes;
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
    }
    changed += touched;
  }
  pages_ = uint8_t(changed);
  if (pages_ == 0) return end_reservation(reserved_);

  std::byte* record = session_.record_.get();
  const uint32_t bytes = build_record(record);
  VERIFY(bytes <= kMiniRecordMax);
  if (bytes > reserved_) session_.counts_.add(Count::kOverdrafts);

  LogGate& gate = pool_.gate_;
  gate.announce(session_.id());
  const uint64_t sequence = pool_.ring_.append(session_.memory(), {record, bytes}, reserved_);
  session_.reserved_ -= std::min(session_.reserved_, reserved_);
  reserved_ = 0;
  const Lsn lsn = session_.log_.append({record, bytes});
  gate.appended(lsn);
  uint64_t dirtied = 0;
  for (int p = 0; p < pages_; ++p) {
    Joined& page = joined_[p];
    ++reinterpret_cast<PageHeader*>(page.bytes)->version;
    page.dirty[0] |= 1;  // the header
    dirtied += !page.line->is_dirty();
    page.line->note_change(page.dirty, lsn, sequence);
  }
  gate.withdraw(session_.id());
  session_.counts_.add(Count::kMiniTransactions);
  session_.counts_.add(Count::kRedoBytes, bytes);
  if (dirtied != 0) session_.note_dirtied(dirtied);
  pages_ = 0;
  ranges_ = 0;
}

}  // namespace bufmgr

#include "extension/engine/blink/scan.hpp"

#include <type_traits>

#include "extension/engine/blink/search.hpp"
#include "extension/engine/stop/stop_point.hpp"

namespace engine::blink {
namespace {

static_assert(std::is_trivially_destructible_v<Scan> && std::is_trivially_copyable_v<Scan>);  // blink.scan-plain-data

// Up to this many entries are copied one by one; more, by copying the page's whole entry area.
constexpr uint32_t kOneByOneMax = 32;
// Pages that a walk back goes right before it reads again where it came from.
constexpr int kMovesMax = 4;

// An inclusive low bound begins before its equals, an inclusive high bound ends behind them.
Seek low_seek(const Bound& b) {
  return b.inclusive ? Seek::before(b.search, b.complete) : Seek::after(b.search, b.complete);
}
Seek high_seek(const Bound& b) {
  return b.inclusive ? Seek::after(b.search, b.complete) : Seek::before(b.search, b.complete);
}

}  // namespace

void Scan::reset(const Range& range, PageId from) {
  range_ = range;
  from_ = from;
  started_ = false;
  index_ = 0;
  leaf_.count = 0;
}

Result<bool> Scan::next(Entry& out) {
  if (!started_) {
    if (const Status s = load(range_.low.search != nullptr ? Way::kSeekLow : Way::kSeekFirst); !s) return s.error();
    started_ = true;
    index_ = 0;
  } else if (index_ < int32_t(leaf_.count)) {
    ++index_;
  }
  while (index_ >= int32_t(leaf_.count)) {
    if (leaf_.high_end) return false;
    if (const Status s = load(Way::kRight); !s) return s.error();
    index_ = 0;
  }
  hand_out(out);
  return true;
}

Result<bool> Scan::prev(Entry& out) {
  if (!started_) {
    if (const Status s = load(range_.high.search != nullptr ? Way::kSeekHigh : Way::kSeekLast); !s) return s.error();
    started_ = true;
    index_ = int32_t(leaf_.count) - 1;
  } else if (index_ >= 0) {
    --index_;
  }
  while (index_ < 0) {
    if (leaf_.low_end) return false;
    if (const Status s = load(Way::kLeft); !s) return s.error();
    index_ = int32_t(leaf_.count) - 1;
  }
  hand_out(out);
  return true;
}

void Scan::hand_out(Entry& out) const {
  const std::byte* key = leaf_.bytes + leaf_.at[index_];
  out.key = {key, leaf_.size[index_]};
  out.tid = load_tid(key);
}

// Fills leaf_ with the next page's entries in the range.
Status Scan::load(Way way) {
  if (way != Way::kRight && way != Way::kLeft) return seek(way);
  stop_at(*session_, StopPoint::kBlinkLeafLeft);
  return way == Way::kRight ? step_right() : step_left();
}

Status Scan::step_right() {
  PageReader reader;
  Head head;
  for (PageId page = leaf_.right;;) {
    if (!page.valid()) return Errc::kCorrupt;
    if (const Status s = hold(page, nullptr); !s) return s;
    if (const Status s = reader.at(*tree_.pool_, *session_, page); !s) return s;
    Errc e = read_head(reader.source(), head) && head.leaf() ? Errc::kOk : torn_or_corrupt(reader.source());
    if (e == Errc::kOk && head.gone()) {  // what may be in its range is in the next page
      if (reader.source().validate()) {
        page = head.special.right;
        continue;
      }
      e = Errc::kRestart;
    }
    if (e == Errc::kOk) e = gather(Way::kRight, page, reader.source(), head);
    if (e != Errc::kRestart) return e;
    reader.failed();
  }
}

// The page on the left of the one we come from, `base`, is the one whose right link names it: it may have been split
// since its number was read, or deleted.  Then the base is read again; or, if that was deleted, the page its range
// went to.  Every page between the two was empty when it left.
Status Scan::step_left() {
  PageReader reader;
  Head head;
  PageId base = leaf_.id, page = leaf_.left;
  for (int moves = 0;;) {
    if (!page.valid()) return Errc::kCorrupt;
    if (const Status s = hold(page, nullptr); !s) return s;
    if (const Status s = reader.at(*tree_.pool_, *session_, page); !s) return s;
    Errc e = read_head(reader.source(), head) && head.leaf() ? Errc::kOk : torn_or_corrupt(reader.source());
    if (e == Errc::kOk && (head.deleted() || head.special.right != base)) {
      e = Errc::kRestart;
      if (reader.source().validate()) {
        if (!head.deleted() && head.special.right.valid() && ++moves <= kMovesMax) {
          page = head.special.right;
          continue;
        }
        moves = 0;
        if (session_->interrupted()) return Errc::kInterrupted;
        if (const Status s = left_of(base, page); !s) return s;
        if (page.valid()) continue;
        begin_before(base);
        return {};
      }
    }
    if (e == Errc::kOk) e = gather(Way::kLeft, page, reader.source(), head);
    if (e != Errc::kRestart) return e;
    reader.failed();
  }
}

// The left link of `base`, or of the page that has its range now, which becomes the base.
Status Scan::left_of(PageId& base, PageId& left) {
  PageReader reader;
  Head head;
  for (;;) {
    if (const Status s = reader.at(*tree_.pool_, *session_, base); !s) return s;
    const bool sane = read_head(reader.source(), head) && head.leaf();
    if (!reader.source().validate()) {
      reader.failed();
      continue;
    }
    if (!sane) return Errc::kCorrupt;
    left = head.special.left;
    if (!head.deleted()) return {};
    base = head.special.right;
    if (!base.valid()) return Errc::kCorrupt;
  }
}

// All that was on the left has left the tree.
void Scan::begin_before(PageId first) {
  leaf_.id = leaf_.left = {};
  leaf_.right = first;
  leaf_.low_end = true;
  leaf_.high_end = false;
  leaf_.count = 0;
}

Status Scan::seek(Way way) {
  PageReader reader;
  Head head;
  const bool from_low = way == Way::kSeekLow || way == Way::kSeekFirst;
  const Seek place = from_low ? low_seek(range_.low) : high_seek(range_.high);
  PageId from = way == Way::kSeekLow && from_.valid() ? from_ : tree_.root_;
  for (;;) {
    const Status s = descend(*tree_.pool_, *session_, *compare_, place, from, 0, nullptr, nullptr, reader, head);
    if (!s) return s;
    bool newly = false;
    if (const Status held = hold(reader.id(), &newly); !held) return held;
    const Errc e = newly ? Errc::kRestart : gather(way, reader.id(), reader.source(), head);
    if (e != Errc::kRestart) return e;
    from = reader.id();
    if (!newly) reader.failed();
  }
}

// A range whose bounds are one integer has entries with that alone (blink.integers-are-parts).
bufmgr::Parts Scan::parts_of_range() const {
  if (range_.low.search == nullptr || range_.high.search == nullptr) return bufmgr::kWholePage;
  const IntegerOrder low = compare_->integer_order(range_.low.search);
  const IntegerOrder high = compare_->integer_order(range_.high.search);
  return low.decides && high.decides && low.number == high.number ? parts_of(low) : bufmgr::kWholePage;
}

// What is read after that stays as it is until the transaction's end.
Status Scan::hold(PageId leaf, bool* newly) {
  if (!holds_) return {};
  auto held = session_->hold_to_read(leaf, parts_of_range());
  if (!held) return held.error();
  if (newly != nullptr) *newly = *held;
  return {};
}

// leaf_ keeps its place among the leaves until the page is read, but loses its entries (blink.scan-after-error).
Errc Scan::gather(Way way, PageId id, const Source& page, const Head& head) {
  Ends ends;
  if (const Errc e = find_ends(way, page, head, ends); e != Errc::kOk) return e;
  if (const Errc e = copy_out(page, head, ends); e != Errc::kOk) return e;
  leaf_.id = id;
  leaf_.version = head.version;
  leaf_.left = head.special.left;
  leaf_.right = head.special.right;
  leaf_.low_end = ends.low;
  leaf_.high_end = ends.high;
  leaf_.count = uint16_t(ends.to - ends.from);
  return Errc::kOk;
}

Errc Scan::find_ends(Way way, const Source& page, const Head& head, Ends& ends) {
  const uint32_t n = head.count;
  const bool has_left = head.special.left.valid(), has_right = head.special.has_right();
  const Seek low = low_seek(range_.low).asking(*compare_), high = high_seek(range_.high).asking(*compare_);
  Errc e = Errc::kOk;
  bool whole = true;  // the range goes on to the right of the page
  ends = {0, n, !has_left, !has_right};
  switch (way) {
    case Way::kSeekFirst:
    case Way::kSeekLow:
      e = find_low(low, false, page, head, n, ends.from);
      if (e == Errc::kOk) e = find_high(high, page, head, ends.from, ends.to);
      if (e == Errc::kOk && ends.to == n && range_.high.search != nullptr)
        e = beyond(*compare_, high, page, head, whole);
      ends.low = true;
      ends.high = ends.to < n || !has_right || !whole;
      return e;
    case Way::kSeekLast:
    case Way::kSeekHigh:
      if (range_.high.search != nullptr) e = position(*compare_, high, page, head, 0, n, ends.to);
      if (e == Errc::kOk) e = find_low(low, false, page, head, ends.to, ends.from);
      ends.low = ends.from > 0 || !has_left;
      ends.high = true;
      return e;
    case Way::kRight:
      // The page may have taken over the range of one further left than ours began.
      e = find_low(low, true, page, head, n, ends.from);
      ends.low = ends.from > 0 || !has_left;
      if (e != Errc::kOk || range_.high.search == nullptr) return e;
      e = beyond(*compare_, high, page, head, whole);
      if (e != Errc::kOk || whole) return e;
      ends.high = true;
      return find_high(high, page, head, ends.from, ends.to);
    case Way::kLeft:
      e = find_low(low, true, page, head, n, ends.from);
      ends.low = ends.from > 0 || !has_left;
      return e;
  }
  VERIFY(false);
}

// The first of the entries [0, to) that the low bound lets in.
Errc Scan::find_low(const Seek& low, bool likely_whole, const Source& page, const Head& head, uint32_t to,
                    uint32_t& from) {
  from = 0;
  if (low.search == nullptr || to == 0) return Errc::kOk;
  if (likely_whole) {
    if (const Errc e = position(*compare_, low, page, head, 0, 1, from); e != Errc::kOk || from == 0) return e;
  }
  return position(*compare_, low, page, head, from, to, from);
}

// The end of the entries from `from` on that the high bound lets in: near, more often than not.
Errc Scan::find_high(const Seek& high, const Source& page, const Head& head, uint32_t from, uint32_t& to) {
  to = head.count;
  if (high.search == nullptr) return Errc::kOk;
  uint32_t in = from;  // entries before this one are in
  while (in < head.count) {
    const uint32_t stride = in > from ? in - from : 1;
    const uint32_t end = in + stride < head.count ? in + stride : head.count;
    uint32_t last;
    if (const Errc e = position(*compare_, high, page, head, end - 1, end, last); e != Errc::kOk) return e;
    if (last < end && in == end - 1) {
      to = in;
      return Errc::kOk;
    }
    if (last < end) return position(*compare_, high, page, head, in, end - 1, to);
    in = end;
  }
  return Errc::kOk;
}

Errc Scan::copy_out(const Source& page, const Head& head, const Ends& ends) {
  const uint32_t count = ends.to - ends.from;
  const bool one_by_one = count <= kOneByOneMax;
  uint32_t used = 0;
  for (uint32_t i = 0; i < count; ++i) {
    Link link;
    if (!read_link(page, head, ends.from + i, link) || link.bytes < kKeyMin) return torn_or_corrupt(page);
    leaf_.size[i] = link.bytes;
    leaf_.at[i] = one_by_one ? uint16_t(used) : link.offset;
    if (!one_by_one) continue;
    if (used + align8(link.bytes) > kPageSize) return torn_or_corrupt(page);
    page.copy(link.offset, leaf_.bytes + used, link.bytes);
    used += align8(link.bytes);
  }
  if (!one_by_one) page.copy(head.upper, leaf_.bytes + head.upper, kSpecialAt - head.upper);
  return page.validate() ? Errc::kOk : Errc::kRestart;
}

}  // namespace engine::blink

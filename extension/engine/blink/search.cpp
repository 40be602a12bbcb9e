#include "extension/engine/blink/search.hpp"

namespace engine::blink {
namespace {

constexpr uint32_t kOptimisticTriesMax = 16;  // then a page is copied under a shared guard

// The place's order against an entry or pivot with an equal key.
int order_of_equals(const Seek& seek, const std::byte* key) {
  switch (seek.tie) {
    case Seek::Tie::kAfter:
      return 1;
    case Seek::Tie::kTid: {
      if (is_pivot(key)) return 1;  // blink.pivot-tid-minus-infinity
      const Tid tid = load_tid(key);
      return seek.tid < tid ? -1 : seek.tid == tid ? 0 : 1;
    }
    case Seek::Tie::kBefore:
      // A pivot without a tid begins with the first entry of its key: exactly this place, if the key is all given.
      return seek.search != nullptr && seek.complete && is_pivot(key) ? 0 : -1;
  }
  VERIFY(false);
}

IntegerOrder integer_order(Comparator& compare, const Seek& seek) {
  if (seek.asked) return seek.integer;
  return seek.search != nullptr ? compare.integer_order(seek.search) : IntegerOrder{};
}

// As order(), or kUnsure.
inline int order_by_head(const IntegerOrder& integer, const Seek& seek, const KeyHead& head) {
  int c = 0;
  if (seek.search != nullptr) c = integer.decides ? integer.against(head) : IntegerOrder::kUnsure;
  return c != 0 ? c : order_of_equals(seek, head.bytes());
}

}  // namespace

int order(Comparator& compare, const Seek& seek, std::span<const std::byte> key) {
  if (seek.search != nullptr) {
    const int c = compare.compare(seek.search, key);
    if (c != 0) return c;
  }
  return order_of_equals(seek, key.data());
}

Status PageReader::at(BufferPool& pool, Session& session, PageId id, Intent intent) {
  if (id != id_) failures_ = 0;
  id_ = id;
  if (failures_ >= kOptimisticTriesMax) {
    source_ = Source::plain(copy_);
    return pool.copy_page(session, id, copy_);
  }
  if (const bufmgr::OptimisticGuard guard = pool.peek(session, id)) {
    source_ = Source::optimistic(guard);
    return {};
  }
  auto guard = pool.fix_optimistic(session, id, intent);
  if (!guard && guard.error() == Errc::kHeld) {  // bufmgr.held-page-copied
    source_ = Source::plain(copy_);
    return pool.copy_page(session, id, copy_);
  }
  if (!guard) return guard.error();
  source_ = Source::optimistic(*guard);
  return {};
}

namespace {

// The order against entry `i`, by a copy of its key.  (A function of its own: the copy is 2.7 KB of stack.)
[[gnu::noinline]] Errc order_copy(Comparator& compare, const Seek& seek, const Source& page, const Head& head,
                                  uint32_t i, int& result) {
  Key key;
  if (!read_key(page, head, i, key)) return torn_or_corrupt(page);
  if (!page.validate()) return Errc::kRestart;
  result = order(compare, seek, key.span());
  return Errc::kOk;
}

// The same against the page's high key.
[[gnu::noinline]] Errc order_high_copy(Comparator& compare, const Seek& seek, const Source& page, const Head& head,
                                       int& result) {
  Key key;
  if (!read_high(page, head, key)) return torn_or_corrupt(page);
  if (!page.validate()) return Errc::kRestart;
  result = order(compare, seek, key.span());
  return Errc::kOk;
}

// What an entry with an equal integer is.
enum class Equals : uint8_t { kUnsure, kBefore, kBehind };  // the place lies before or behind it

// Where nothing comes behind the integer, and the place is not among its equals, that decides, too; of inner pages
// whether the entry is a pivot is left to order_of_equals().
Equals equals_of(const IntegerOrder& integer, const Seek& seek, const Head& head) {
  if (!integer.alone || seek.tie == Seek::Tie::kTid) return Equals::kUnsure;
  if (seek.tie == Seek::Tie::kAfter) return Equals::kBehind;
  return head.leaf() ? Equals::kBefore : Equals::kUnsure;
}

// Narrows [low, high) as long as integers decide; most searches end here.  Reads words that lie in the page, whatever
// its links say: nothing is believed before the page is validated.
template <bool kNarrow>
void narrow(const IntegerOrder& integer, Equals equals, const Source& page, const Head& head, uint32_t& low,
            uint32_t& high) {
  const std::byte* const bytes = page.bytes();
  const uint32_t skip = head.entry_skip(), least = skip + sizeof(KeyHead), last = kSpecialAt - least;
  const int64_t number = integer.number;
  const uint64_t unless = integer.unless;
  const bool descending = integer.descending;
  uint32_t from = low, to = high;
  while (from < to) {
    const uint32_t middle = (from + to) / 2;
    const Link link = load_link(bytes, middle);
    if (link.offset % 8 != 0 || link.offset > last || link.bytes < least) break;
    const std::byte* const key = bytes + link.offset + skip;
    const uint64_t word = bufmgr::load_page_word(key + 8);
    const int64_t found = kNarrow ? int64_t{int32_t(uint32_t(word))} : int64_t(word);
    if ((bufmgr::load_page_word(key) & unless) != 0) break;
    if (found == number && equals == Equals::kUnsure) break;
    if (found == number ? equals == Equals::kBehind : (found < number) != descending)
      from = middle + 1;
    else
      to = middle;
  }
  low = from;
  high = to;
}

}  // namespace

Errc position(Comparator& compare, const Seek& seek, const Source& page, const Head& head, uint32_t from, uint32_t to,
              uint32_t& index) {
  const IntegerOrder integer = integer_order(compare, seek);
  // Leaf: entries before `low` lie before the place, those from `high` on do not.
  // Inner: children before `low` begin at or before the place (blink.first-key-minus-infinity: the first always does).
  uint32_t low = from, high = to;
  if (!head.leaf()) low = 1;
  const int least = head.leaf() ? 1 : 0;
  bool believed = true;  // no step was taken by bytes that were not validated
  if (integer.decides && low < high) {
    believed = false;
    const Equals equals = equals_of(integer, seek, head);
    if (integer.narrow)
      narrow<true>(integer, equals, page, head, low, high);
    else
      narrow<false>(integer, equals, page, head, low, high);
  }
  while (low < high) {
    const uint32_t middle = low + (high - low) / 2;
    KeyHead first;
    int c = IntegerOrder::kUnsure;
    if (read_key_head(page, head, middle, first)) c = order_by_head(integer, seek, first);
    if (c == IntegerOrder::kUnsure) {
      if (const Errc e = order_copy(compare, seek, page, head, middle, c); e != Errc::kOk) return e;
    } else {
      believed = false;
    }
    if (c >= least)
      low = middle + 1;
    else
      high = middle;
  }
  index = head.leaf() ? low : low - 1;
  return believed || page.validate() ? Errc::kOk : Errc::kRestart;
}

Errc beyond(Comparator& compare, const Seek& seek, const Source& page, const Head& head, bool& yes) {
  yes = false;
  if (!head.special.has_right()) return Errc::kOk;
  if (seek.search == nullptr) {
    yes = seek.tie == Seek::Tie::kAfter;
    return Errc::kOk;
  }
  KeyHead first;
  int c = IntegerOrder::kUnsure;
  if (read_high_head(page, head, first)) c = order_by_head(integer_order(compare, seek), seek, first);
  if (c != IntegerOrder::kUnsure) {
    if (!page.validate()) return Errc::kRestart;
  } else if (const Errc e = order_high_copy(compare, seek, page, head, c); e != Errc::kOk) {
    return e;
  }
  yes = c >= 0;
  return Errc::kOk;
}

namespace {

// One page of a descent.  kOk and next invalid: this is the page; else go to `next`.
Errc step(Comparator& compare, const Seek& seek, uint16_t level, bool stop_at_incomplete, const Source& page,
          Head& head, PageId& next, bool& incomplete) {
  next = {};
  incomplete = false;
  if (!read_head(page, head)) return torn_or_corrupt(page);
  if (!page.validate()) return Errc::kRestart;
  if (head.special.level < level) return Errc::kNotFound;
  if (head.gone()) {  // blink.deleted-covers-nothing
    next = head.special.right;
    return next.valid() ? Errc::kOk : Errc::kCorrupt;
  }
  if (stop_at_incomplete && head.incomplete()) {
    incomplete = true;
    return Errc::kOk;
  }
  bool right;
  if (const Errc e = beyond(compare, seek, page, head, right); e != Errc::kOk) return e;
  if (right) {
    next = head.special.right;
    return Errc::kOk;
  }
  if (head.special.level == level) return Errc::kOk;
  uint32_t index;
  if (const Errc e = position(compare, seek, page, head, 0, head.count, index); e != Errc::kOk) return e;
  if (!read_child(page, head, index, next)) return torn_or_corrupt(page);
  return page.validate() ? Errc::kOk : Errc::kRestart;
}

}  // namespace

Status read_whole_head(BufferPool& pool, Session& session, PageId page, PageReader& reader, Head& head) {
  for (;;) {
    if (session.interrupted()) return Errc::kInterrupted;
    GCL_TRY(reader.at(pool, session, page));
    const bool sane = read_head(reader.source(), head);
    if (reader.source().validate()) return sane ? Errc::kOk : Errc::kCorrupt;
    reader.failed();
  }
}

Status descend(BufferPool& pool, Session& session, Comparator& compare, const Seek& place, PageId from, uint16_t level,
               Path* path, PageId* incomplete, PageReader& reader, Head& head, Intent intent) {
  const Seek seek = place.asking(compare);
  if (incomplete != nullptr) *incomplete = {};
  PageId page = from;
  bool wanted = false;  // whether it is of the wanted level
  for (;;) {
    if (const Status s = reader.at(pool, session, page, wanted ? intent : Intent::kRead); !s) return s;
    PageId next;
    bool unfinished;
    const Errc e = step(compare, seek, level, incomplete != nullptr, reader.source(), head, next, unfinished);
    if (e == Errc::kRestart) {
      reader.failed();
      continue;
    }
    if (e != Errc::kOk) return e;
    if (head.special.level >= kLevelsMax) return Errc::kCorrupt;
    if (path != nullptr) path->page[head.special.level] = page;
    if (unfinished) {
      VERIFY(incomplete != nullptr);  // step() was told to stop at none
      *incomplete = page;
      return {};
    }
    if (!next.valid()) return {};
    wanted = next != head.special.right ? head.special.level == level + 1 : head.special.level == level;
    page = next;
  }
}

Status leftmost(BufferPool& pool, Session& session, PageId root, uint16_t level, PageId& page) {
  PageReader reader;
  Head head;
  page = root;
  for (;;) {
    if (const Status s = reader.at(pool, session, page); !s) return s;
    PageId child;
    const bool sane = read_head(reader.source(), head);
    const bool inner = sane && head.special.level > level;
    const bool read = !inner || read_child(reader.source(), head, 0, child);
    if (!reader.source().validate()) {
      reader.failed();
      continue;
    }
    if (!sane || !read) return Errc::kCorrupt;
    if (head.special.level < level) return Errc::kNotFound;
    if (!inner) return {};
    page = child;
  }
}

Status first_of_level(BufferPool& pool, Session& session, PageId root, uint16_t level, PageId& page) {
  GCL_TRY(leftmost(pool, session, root, level, page));
  PageReader reader;
  Head head;
  for (;;) {
    GCL_TRY(reader.at(pool, session, page));
    const bool sane = read_head(reader.source(), head);
    if (!reader.source().validate()) {
      reader.failed();
      continue;
    }
    if (!sane) return Errc::kCorrupt;
    if (!head.special.left.valid()) return {};
    page = head.special.left;
  }
}

}  // namespace engine::blink

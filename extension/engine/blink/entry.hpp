// Index entries as the engine sees them: opaque key bytes and the row they point to, ordered by one comparator seam.
//
// A key is PostgreSQL's IndexTuple image, or anything else whose first six bytes are left to the engine: it keeps the
// tid there, in the form PostgreSQL's ItemPointerData has (three 16-bit words: block high, block low, offset), so that
// a key that comes out of the tree is an IndexTuple with a right t_tid, and a leaf entry is not larger than nbtree's.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>

#include "bufmgr/page_holds.hpp"
#include "extension/engine/heap/row.hpp"

namespace engine::blink {

inline constexpr uint32_t kTidBytes = 6;    // of every key, from its first byte: the engine's
inline constexpr uint32_t kKeyMin = 8;      // bytes of the smallest key
inline constexpr uint32_t kKeyMax = 2688;   // of the largest: three entries and their links fit every page
inline constexpr uint32_t kFillLeaf = 90;   // percent: how full leaves are built, and left where keys arrive in order
inline constexpr uint32_t kFillInner = 70;  // the same of the pages above

// The first bytes of a key, as two words of memory: what many keys can be ordered by.
struct KeyHead {
  uint64_t word[2];
  const std::byte* bytes() const { return reinterpret_cast<const std::byte*>(word); }
};

// An entry in private, 8-byte aligned memory.  What insert() is given in the key's first six bytes does not matter;
// what the tree hands out has the tid there.
struct Entry {
  std::span<const std::byte> key;
  Tid tid;
};

inline void store_tid(std::byte* key, Tid tid) noexcept {
  const uint16_t words[3] = {uint16_t(tid.block >> 16), uint16_t(tid.block), tid.offset};
  std::memcpy(key, words, kTidBytes);
}
inline Tid load_tid(const std::byte* key) noexcept {
  uint16_t words[3];
  std::memcpy(words, key, kTidBytes);
  return {uint32_t{words[0]} << 16 | words[1], words[2]};
}
// A shortened key has minus infinity for its tid.  That takes the tid's offset; the first four bytes stay as shorten()
// made them.
inline void make_pivot(std::byte* key) noexcept { std::memset(key + 4, 0, 2); }
inline bool is_pivot(const std::byte* key) noexcept { return load_tid(key).offset == 0; }

// How a search key orders by an integer in the second word of a key's first bytes.  Plain data.
struct IntegerOrder {
  bool decides = false;  // else nothing here means anything
  bool narrow = false;   // the integer is the word's lower half
  bool descending = false;
  bool alone = false;   // nothing comes behind it: equal integers are equal keys
  uint64_t unless = 0;  // bits of the first word: with one of them set the second word says nothing
  int64_t number = 0;   // what is searched for

  static constexpr int kUnsure = 2;
  // As Comparator::compare(), or kUnsure.  REQUIRES: decides.
  int against(const KeyHead& head) const noexcept {
    const auto found = narrow ? int64_t{int32_t(uint32_t(head.word[1]))} : int64_t(head.word[1]);
    if ((head.word[0] & unless) != 0) return kUnsure;
    if (found == number) return alone ? 0 : kUnsure;
    return (number < found) != descending ? -1 : 1;
  }
};

// blink.integers-are-parts: An entry of a tree whose first attribute is an integer belongs to the part of its leaf that
//     the integer says, whatever comes behind it.  So equal keys have one part, and a range whose bounds begin with one
//     integer has one, too.  Of all other keys the whole leaf is held.
inline bufmgr::Parts parts_of(const IntegerOrder& first) noexcept {
  return first.decides ? bufmgr::part(uint64_t(first.number)) : bufmgr::kWholePage;
}

// The comparator seam.  Keys given to it always lie in private, 8-byte aligned memory (never in a page): it may run
// user code, and it may leave by the host's error mechanism (longjmp), because no guard is held and nothing that owns
// something is on the stack (blink.compare-private-memory).
class Comparator {
 public:
  virtual ~Comparator() = default;

  // Orders the search key (opaque to the engine, owned by the caller) against an entry's key: <0, 0, >0 as the search
  // key sorts before, with, after it.  Attributes the search key does not give compare equal.  Attributes it gives
  // and a shortened key lacks: the key has minus infinity there (> 0).  Tids are compared by the engine.
  virtual int compare(const void* search, std::span<const std::byte> key) = 0;

  // Where an integer decides, asked once for many comparisons.  Spares the descent a call, a copy of the key and a
  // check of the page's version each.  The bytes may be torn: the result counts only if the page turns out to be
  // unchanged.
  virtual IntegerOrder integer_order(const void* search) noexcept {
    (void)search;
    return {};
  }

  // How many leading parts of two keys are equal, left <= right: kAllParts if they are equal in all key attributes.  A
  // separator between two neighbours needs one part more than that: leaves are split where these are few.
  static constexpr uint32_t kAllParts = ~0u;
  virtual uint32_t equal_parts(std::span<const std::byte> left, std::span<const std::byte> right) {
    (void)left, (void)right;
    return 0;
  }

  // Suffix truncation.  `left` and `right` are neighbours between which a page is split (left <= right).  If they
  // differ in their key attributes: writes to `to` (room for kKeyMax bytes) a short key k with left < k <= right and
  // returns its length (kKeyMin .. kKeyMax).  `right` without INCLUDE columns and without the attributes behind the
  // first that differs is such a key.  Its first four bytes may say what it lacks; the next two are the tree's.  0 if
  // they are equal, or not to bother: the tree keeps the whole of `right` and its tid.
  virtual uint32_t shorten(std::span<const std::byte> left, std::span<const std::byte> right, std::byte* to) {
    (void)left, (void)right, (void)to;
    return 0;
  }
};

}  // namespace engine::blink

// Descent: from the root, or from any page known to lie left of the wanted place, down to a level and right to the page
// that covers the wanted place.  Comparisons run on copies, between validations (blink.compare-private-memory).
#pragma once

#include "extension/engine/blink/node.hpp"
#include "extension/engine/blink/tree.hpp"

namespace engine::blink {

// A place between entries.  Plain data.
struct Seek {
  enum class Tie : uint8_t {
    kBefore,  // before all entries with this key
    kAfter,   // behind all of them
    kTid,     // among them, by tid
  };
  const void* search = nullptr;  // null: before (behind) everything
  Tie tie = Tie::kBefore;
  bool complete = false;  // all key attributes are given
  Tid tid;
  bool asked = false;  // for the order; else each search of a page asks
  IntegerOrder integer;
  static Seek before(const void* search, bool complete) { return {search, Tie::kBefore, complete, {}}; }
  static Seek after(const void* search, bool complete) { return {search, Tie::kAfter, complete, {}}; }
  static Seek exact(const void* search, Tid tid) { return {search, Tie::kTid, true, tid}; }
  // The same, for several searches.
  Seek asking(Comparator& compare) const {
    Seek seek = *this;
    if (search != nullptr) seek.integer = compare.integer_order(search);
    seek.asked = true;
    return seek;
  }
};

// < 0: the place lies before the key, > 0: behind it, 0: its very entry, or the pivot whose page begins at this place.
int order(Comparator& compare, const Seek& seek, std::span<const std::byte> key);

// The pages a descent went through, by level; where to look for parents.
struct Path {
  PageId page[kLevelsMax];
};

// Reads one page: optimistically, and after many failures on a private copy made under a shared guard.
class PageReader {
 public:
  Status at(BufferPool& pool, Session& session, PageId id, Intent intent = Intent::kRead);
  // To be called when validate() failed, before at() again.
  void failed() noexcept { ++failures_; }
  const Source& source() const { return source_; }
  PageId id() const { return id_; }

 private:
  PageId id_;
  uint32_t failures_ = 0;
  Source source_;
  alignas(8) std::byte copy_[kPageSize];
};

// Outcomes inside the folder: Errc::kOk, kRestart (read the same page again), kCorrupt, or a wait's error.

// Counts the entries of the page that lie before the place (leaf), or finds the child that covers it (inner).
Errc position(Comparator& compare, const Seek& seek, const Source& page, const Head& head, uint32_t from, uint32_t to,
              uint32_t& index);
// Whether the place lies right of the page.
Errc beyond(Comparator& compare, const Seek& seek, const Source& page, const Head& head, bool& yes);
inline Errc torn_or_corrupt(const Source& page) { return page.validate() ? Errc::kCorrupt : Errc::kRestart; }

// Leaves `reader` and `head` at the page of `level` that covers the place.  `path` (may be null) learns the inner
// pages. With `incomplete`: stops at the first page met whose split is not complete, and names it there.  `intent`:
// what the page of `level` is wanted for.
Status descend(BufferPool& pool, Session& session, Comparator& compare, const Seek& seek, PageId from, uint16_t level,
               Path* path, PageId* incomplete, PageReader& reader, Head& head, Intent intent = Intent::kRead);

// The head of a page as it is at one moment.
Status read_whole_head(BufferPool& pool, Session& session, PageId page, PageReader& reader, Head& head);

// The page of a level where its keys begin, found without comparing.  kNotFound: the tree is not that high.
Status leftmost(BufferPool& pool, Session& session, PageId root, uint16_t level, PageId& page);
// The first of a level's chain: half-dead pages that no downlink leads to come before leftmost().
Status first_of_level(BufferPool& pool, Session& session, PageId root, uint16_t level, PageId& page);

}  // namespace engine::blink

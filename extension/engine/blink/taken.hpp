// What a build has taken of the pool, for as long as the tree does not lead to it: the meta page names the newest of a
// chain of lists.  So a build that ends before it is done, however it ends, costs nothing: drop() finds all of it.
//
//   allocate  one mini-transaction: the allocator's map, the list's entry
//   loaded    one mini-transaction: the root, and the mark in the meta page that the tree leads to everything listed
//   then the lists are freed, one by one
#pragma once

#include "bufmgr/space/space_note.hpp"
#include "extension/engine/blink/meta.hpp"

namespace engine::blink {

inline constexpr uint32_t kExtentPages = 64;

struct Taken {
  static constexpr uint64_t kMagic = 0x4e4b542d4b4e4c42;  // "BLNK-TKN"
  struct Entry {
    PageId first;
    uint64_t pages;  // kExtentPages, or fewer, taken one by one
  };
  static constexpr uint32_t kEntries = (kPageSize - kPageBody - 24) / sizeof(Entry);
  uint64_t magic = kMagic;
  PageId older;
  uint64_t count = 0;
  Entry entry[kEntries];
};
static_assert(kPageBody + sizeof(Taken) <= kPageSize);

constexpr uint32_t taken_at(uint64_t i) {
  return uint32_t(kPageBody + offsetof(Taken, entry) + i * sizeof(Taken::Entry));
}

// A list behind `older`, which the meta page names from now on.
Result<PageId> add_list(const Ground& ground, PageId older);
// `count` pages (1 or kExtentPages), noted as the list's i-th entry.
Result<PageId> take_pages(const Ground& ground, PageId list, uint64_t i, uint32_t count);
// Gives back the last page of the i-th entry, which is `entry` and has more.
Status give_back(const Ground& ground, PageId list, uint64_t i, const Taken::Entry& entry);
// One step of freeing the newest list: an entry if `entries`, or the list when it has none.  Sets meta.taken.
Status drop_list(BufferPool& pool, Session& session, PageId page, Meta& meta, bool entries);

}  // namespace engine::blink

// Builder: fills an empty tree from a sorted stream, bottom up; leaves as full as the tree says, each page one
// mini-transaction.
//
//   Builder builder(tree, session, compare);           // 90 KB: allocate it, do not put it on the stack
//   for (...) GCL_TRY(builder.add(key, tid));          // ascending by (key, tid)
//   GCL_TRY(builder.finish());                         // until now the tree is empty for everyone
//
// Plain data: it may be jumped over.  What it took is found by Tree::drop() until finish() has succeeded, and then too.
// The comparator (only shorten() is used) runs under rule blink.compare-private-memory.
#pragma once

#include "extension/engine/blink/edit.hpp"
#include "extension/engine/blink/image.hpp"
#include "extension/engine/blink/tree.hpp"

namespace engine::blink {

class Builder {
 public:
  // REQUIRES: `tree` is empty and no other session writes to it before finish().
  Builder(const Tree& tree, Session& session, Comparator& compare)
      : ground_{tree.pool_, &session, tree.meta_, tree.root_, tree.fill_}, compare_(&compare) {}
  // Appends an entry.  kTooLarge: the key is longer than kKeyMax.  After kInterrupted: nothing was appended, add it
  // again.
  Status add(std::span<const std::byte> key, Tid tid);
  // After kInterrupted: call it again.
  Status finish();
  uint64_t entries() const { return entries_; }

 private:
  static constexpr int kLevels = 8;  // a tree of a thousand million entries has four
  struct Level {
    PageId first;  // of the level, once a page was written
    PageId id;     // of the page in `image`, if it is not the level's only one
    PageId next;   // taken for the page after it
    PageId left;
    bool owed = false;  // the parent still has to get (id, low)
    Key low;            // separator before `image`
    PageImage image;
  };
  Status append(int level, const EntryImage& entry);
  Status close_page(int level, const EntryImage& entry);
  Status append_to_parent(int level);
  void separate(int level, std::span<const std::byte> left, std::span<const std::byte> right, Key& separator);
  Status write_page(PageId page, PageImage& image);
  Status write_root(PageImage& image);
  Result<PageId> take_page();
  Result<PageId> take(uint32_t count);
  Status trim();

  Ground ground_;
  Comparator* compare_;
  uint64_t entries_ = 0;
  uint32_t pages_taken_ = 0;
  PageId extent_;
  uint32_t extent_used_ = 0, extent_pages_ = 0;
  PageId list_;          // what was taken is noted there (taken.hpp)
  uint64_t listed_ = 0;  // entries of it
  bool loaded_ = false;
  int levels_ = 0;
  int finished_ = 0;  // levels whose last page is written
  Level level_[kLevels];
};

}  // namespace engine::blink

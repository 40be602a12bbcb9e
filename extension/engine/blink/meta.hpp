// A tree's two pages that are no nodes: the meta page, its name, and the bin, where pages wait that have left the tree.
// The bin is made by the first VACUUM that needs it.
#pragma once

#include "extension/engine/blink/edit.hpp"
#include "extension/engine/blink/tree.hpp"

namespace engine::blink {

struct Meta {
  static constexpr uint64_t kMagic = 0x4b4e494c422d4347;  // "GC-BLINK"
  static constexpr uint32_t kFormat = 3;
  uint64_t magic = kMagic;
  uint32_t format = kFormat;
  uint32_t dropping = 0;  // 1: the pages before these are gone
  PageId root;
  PageId drop_next;   // next to free on its level
  PageId drop_below;  // first page of the level below
  PageId bin;
  PageId taken;         // the newest list of what a build has taken (taken.hpp)
  uint64_t loaded = 0;  // 1: the tree leads to what is listed there
};
static_assert(sizeof(Meta) == 64);  // of a PageNote

// Two lists of deleted pages, linked through Special::gate.
struct Bin {
  static constexpr uint64_t kMagic = 0x4e49422d4b4e4c42;  // "BLNK-BIN"
  uint64_t magic = kMagic;
  PageId fresh;         // left the tree after `moment`
  PageId waiting;       // before it
  uint64_t moment = 0;  // of the Horizon's clock
  uint64_t pages = 0;   // on both
};

Status read_meta(BufferPool& pool, Session& session, PageId page, Meta& meta);
Status read_bin(BufferPool& pool, Session& session, PageId page, Bin& bin);
// The tree's bin, made if there is none.  REQUIRES: as remove_if().
Status open_bin(const Ground& ground, PageId& bin);
// The pages of the first list become those of the second, which is empty.
Status advance_bin(const Ground& ground, PageId bin, uint64_t moment);
// Takes the first page off one of the lists, and frees it.
Status free_first(BufferPool& pool, Session& session, PageId bin, PageId Bin::*list);

}  // namespace engine::blink

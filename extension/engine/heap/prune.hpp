// Writing a heap page anew from a private image, logging only what differs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "bufmgr/mini_transaction.hpp"

namespace engine {

// Makes line pointers and space of `page` what they are in `to`, and (`rows`) the rows; version and identity stay.
// REQUIRES: joined.
void put_page(bufmgr::MiniTransaction& change, bufmgr::ExclusiveGuard& page, const std::byte* to, bool rows);

// A page as prune will leave it, made on a private copy (Heap::plan_prune()).  A session that changes the page for
// another reason writes it in the same mini-transaction.
inline constexpr int kPruneTries = 3;
// From so many superseded versions on, a look for dead ones is made with a fresh horizon, and not under a guard
// (heap.superseded-are-counted).
inline constexpr uint32_t kManySuperseded = 8;
inline constexpr uint32_t kLogForPrune = coherence::kPageSize + 256;
struct PrunedPage {
  uint64_t version = 0;  // of the page that it was made of; 0: there is nothing to prune
  uint32_t removed = 0;
  bool rows_moved = false;
  // For the row that room was wanted for: its line pointer, and where it may lie; 0: nowhere.
  uint16_t line = 0;
  uint32_t place = 0;
  // Header and line pointers; the rows only if they were moved.
  alignas(8) std::byte bytes[coherence::kPageSize];

  // Whether it still is what will be left (heap.prune-only-unseen).
  bool is_of(const bufmgr::ExclusiveGuard& page) const { return version != 0 && page.header().version == version; }
  void put(bufmgr::MiniTransaction& change, bufmgr::ExclusiveGuard& page) const {
    put_page(change, page, bytes, rows_moved);
  }
};

}  // namespace engine

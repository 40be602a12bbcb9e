// The page: 8 KB, the unit of coherence, eviction and redo.  Every page of the pool begins with this header.
//
// The version grows by one per mini-transaction, under the exclusive latch, across all nodes (log.version-never-reset).
#pragma once

#include <cstdint>

#include "coherence/base/ids.hpp"

namespace bufmgr {

using coherence::kPageSize;
using coherence::PageId;

enum class PageType : uint8_t {
  kUnused = 0,     // zeroed, never used, or freed
  kPoolRoot = 1,   // page 0
  kSpaceMap = 2,   // page allocator
  kRelation = 3,   // a relation's header page
  kExtentMap = 4,  // a relation's map page
  kHeap = 5,
  kBlinkMeta = 6,
  kBlinkInner = 7,
  kBlinkLeaf = 8,
  kLockCells = 9,
  kLog = 10,       // shared DDL log
  kList = 11,      // small shared lists (aborted ids)
  kSequence = 12,  // how far a sequence has come
  kStatus = 13,    // status words of transactions that their ring could not keep
  kReclaim = 14,   // relations that are being made, or were dropped
  kLogRoot = 15,   // where the shared DDL log begins and ends
};

struct PageHeader {
  uint64_t version;     // mini-transactions that changed this page, ever
  uint64_t lsn;         // reserved: log position of the last change on `lsn_node`, for a flush dependency in grants
  uint32_t checkpoint;  // number of the pool checkpoint that holds the last full image
  uint32_t checksum;    // of the page on durable storage; 0 in memory
  uint32_t relation;    // low bits of the owning relation's header page number; 0: none
  PageType type;
  uint8_t lsn_node;
  uint16_t flags;    // of the page type
  uint16_t lower;    // slotted pages: end of line pointers
  uint16_t upper;    // slotted pages: start of row data
  uint16_t special;  // slotted pages: start of the special area (kPageSize: none)
  uint16_t reserved;
};
static_assert(sizeof(PageHeader) == 40);

// Offset of the first byte a page type may use.
inline constexpr uint32_t kPageBody = sizeof(PageHeader);

}  // namespace bufmgr

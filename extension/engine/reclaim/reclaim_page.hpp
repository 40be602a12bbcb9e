// Layout of a reclaim list's pages; rules in reclaim_list.hpp.
#pragma once

#include <cstddef>

#include "bufmgr/base/page.hpp"
#include "extension/engine/txn/txn_id.hpp"

namespace engine {

using coherence::PageId;

enum class ReclaimKind : uint8_t { kTable = 1, kIndex = 2, kSequence = 3 };
enum class ReclaimWhat : uint8_t { kMade = 0, kDropped = 1 };

struct ReclaimRecord {
  uint64_t word = 0;  // 0: none; the id, kind in bits 57..59, what in bit 60
  uint64_t page = 0;  // the relation's first page
  static ReclaimRecord of(TxnId by, ReclaimKind kind, ReclaimWhat what, PageId page) {
    return {by.raw | uint64_t(kind) << TxnId::kBits | uint64_t(what) << (TxnId::kBits + 3), page.raw};
  }
  TxnId by() const { return {word & ((uint64_t{1} << TxnId::kBits) - 1)}; }
  ReclaimKind kind() const { return ReclaimKind(word >> TxnId::kBits & 7); }
  ReclaimWhat what() const { return ReclaimWhat(word >> (TxnId::kBits + 3) & 1); }
  bool operator==(const ReclaimRecord&) const = default;
};
static_assert(sizeof(ReclaimRecord) == 16);

struct ReclaimPage {
  bufmgr::PageHeader header;         // type kReclaim
  uint64_t next;                     // link to the next older page; 0: none
  uint32_t node;                     // of the list
  uint32_t closed;                   // 1: gets no records any more
  uint64_t lock_token, lock_holder;  // root page: the session that may remove (reclaim.lock-holder-removes)
  static constexpr uint32_t kRecords = (coherence::kPageSize - sizeof(bufmgr::PageHeader) - 32) / sizeof(ReclaimRecord);
  ReclaimRecord record[kRecords];
};
static_assert(sizeof(ReclaimPage) <= coherence::kPageSize);

constexpr uint32_t record_at(uint32_t i) { return uint32_t(offsetof(ReclaimPage, record) + i * sizeof(ReclaimRecord)); }
inline bool is_list_of(const ReclaimPage& page, NodeId node) {
  return page.header.type == bufmgr::PageType::kReclaim && page.node == node.value;
}

}  // namespace engine

// Layout of a page of the aborted list (aborted_list.cpp): ascending sequences, 0 behind the last one.
#pragma once

#include <cstdint>

#include "bufmgr/base/page.hpp"

namespace engine {

struct AbortedListPage {
  bufmgr::PageHeader header;  // type kList
  uint64_t next;              // raw page id + 1 of the next; 0: none
  uint64_t owner;             // node + 1
  uint64_t number;            // of the page in the list, from 0
  static constexpr uint32_t kEntries = (coherence::kPageSize - sizeof(bufmgr::PageHeader) - 24) / 8;
  uint64_t entry[kEntries];
};
static_assert(sizeof(AbortedListPage) <= coherence::kPageSize);

}  // namespace engine

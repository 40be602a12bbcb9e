// Layout of the pages that status words go to when they leave the ring (overflow.cpp), all of type kStatus.
//
//   root page -> directory pages -> pages of words
#pragma once

#include <cstdint>

#include "bufmgr/base/page.hpp"

namespace engine {

struct OverflowPage {
  static constexpr uint64_t kWords = 1000, kFanout = 1000;
  bufmgr::PageHeader header;
  uint64_t owner;         // of words: node + 1; root and directories: 0
  uint64_t block;         // of words: their sequences / kWords; root and directories: 0
  uint64_t word[kWords];  // root and directories: raw page id + 1 of each page below; 0: none
};
static_assert(sizeof(OverflowPage) <= coherence::kPageSize && OverflowPage::kFanout <= OverflowPage::kWords);

}  // namespace engine

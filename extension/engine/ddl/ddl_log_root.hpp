// Layout of the DDL log's root page, which has a type of its own: a restart finds it by that if no word leads there.
#pragma once

#include <cstdint>

#include "bufmgr/base/page.hpp"

namespace engine {

// At bufmgr::kPageBody of a page of type kLogRoot.
struct DdlLogRoot {
  uint64_t count;        // entries ever
  uint64_t first, last;  // raw PageId of entries; ~0: none
  uint64_t removed;      // number of the newest entry that was removed
  uint64_t pages;        // of the entries that are left
};

}  // namespace engine

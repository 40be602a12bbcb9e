// Checks of one page alone, in private memory: what its bytes must be whatever other pages say (rules.md).  They read
// nothing but the page, and nothing outside of it.
#pragma once

#include <cstddef>

#include "extension/engine/check/finding.hpp"
#include "extension/engine/heap/heap_page.hpp"

namespace engine {

// check.header-is-sane.  False: the page is of no use to further checks.
bool check_header(const std::byte* page, bufmgr::PageType type, uint32_t relation, const FindingPlace& at,
                  Findings& findings);

// check.heap-space, check.line-states, check.row-shape: of a heap page.  `attributes`: columns of the table.  Returns
// whether its lines can be followed.
bool check_heap_page(const std::byte* page, uint16_t attributes, const FindingPlace& at, Findings& findings);

}  // namespace engine

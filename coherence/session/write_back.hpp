// What goes back to the pool when a page leaves its node, or is written back.
#pragma once

#include "coherence/line/line.hpp"
#include "coherence/member/node_parts.hpp"
#include "coherence/transport/memory.hpp"

namespace coherence {

inline constexpr int kWriteBackOpsMax = 9;  // of a line

// WRITEs of the dirty ranges; the page's version last (repair.version-written-last).  REQUIRES: the bytes do not
// change, hint bits aside.
void add_write_back(const NodeParts& node, Batch& batch, Line& line) noexcept;
// WRITEs of all of the page, likewise.
void add_whole_page(const NodeParts& node, Batch& batch, Line& line) noexcept;
// The batch is complete: the redo of these changes is needed no longer.
void written_back(Line& line) noexcept;

}  // namespace coherence

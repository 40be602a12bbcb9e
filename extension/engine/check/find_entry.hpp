// Whether an index has the entry of a row: one descent to where it must be (check.row-has-entry).
#pragma once

#include "extension/engine/blink/tree.hpp"

namespace engine {

// REQUIRES: the session counts for the horizon.  The comparator may leave by longjmp: nothing is held.
coherence::Result<bool> find_entry(bufmgr::BufferPool& pool, bufmgr::Session& session, const blink::Tree& tree,
                                   blink::Comparator& compare, const void* search, Tid tid);

}  // namespace engine

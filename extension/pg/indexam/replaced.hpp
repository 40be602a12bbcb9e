// The tree that a rebuild of an index replaces.  The catalog tells an access method only that it is to build; which
// tree the index had until then is found through the file it had.
#pragma once

#include <optional>

#include "extension/pg/runtime/relation_record.hpp"

namespace gcl {

// The tree `index` had before it was given to ambuild, if any.  Called before the new record is written.
std::optional<coherence::PageId> replaced_tree(Relation index);

// `index` now has this tree; remembered until the transaction ends.
void note_tree(Relation index, coherence::PageId meta);

}  // namespace gcl

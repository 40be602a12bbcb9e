// From a Relation to its tree.
#pragma once

#include "extension/engine/blink/tree.hpp"
#include "extension/pg/runtime/relation_record.hpp"
#include "extension/pg/runtime/serializable.hpp"
#include "extension/pg/runtime/until_done.hpp"

extern "C" {
#include "access/nbtree.h"
#include "catalog/pg_am.h"
#include "storage/itemptr.h"
#include "utils/rel.h"
}

namespace gcl {

inline engine::blink::Tree open_any_tree(Relation index) {
  const uint32_t fill = static_cast<uint32_t>(BTGetFillFactor(index));
  const coherence::PageId meta = relation_page(index);
  if (const coherence::PageId root = relation_root(index); root.valid())
    return engine::blink::Tree::opened(pool(), meta, root).filled(fill);
  const engine::blink::Tree tree =
      *until_done(index, [&] { return engine::blink::Tree::open(pool(), session(), meta); });
  if (relation_page(index) == meta) note_relation_root(index, tree.root());
  return tree.filled(fill);
}

inline engine::blink::Tree open_tree(Relation index) {
  const engine::blink::Tree tree = open_any_tree(index);
  return !session().holding() || holds_of(index).writes ? tree : tree.unheld();
}

// ERROR as nbtree's for a key that no page can hold.
void report_too_large(Relation index, Relation table, Size bytes, ItemPointer tid);

}  // namespace gcl

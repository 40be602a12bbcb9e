// What all nodes have told of a relation's changes, in its header page: for the hosts' housekeeping, and no more exact
// than that.
#include <cstddef>

#include "extension/engine/heap/heap.hpp"
#include "extension/engine/heap/page_change.hpp"
#include "extension/engine/heap/relation_map.hpp"

namespace engine {

Result<RelationCounts> Heap::counts() {
  for (;;) {
    auto optimistic = txns_.pool().fix_optimistic(txns_.session(), relation_.header);
    if (!optimistic) return optimistic.error();
    auto type = optimistic->get<PageHeader>(0).type;
    auto counts = optimistic->get<RelationCounts>(offsetof(RelationPage, counts));
    if (!optimistic->validate()) continue;
    if (type != PageType::kRelation) return Errc::kNotFound;
    return counts;
  }
}

template <class Change>
Result<RelationCounts> Heap::change_counts(Change apply) {
  MiniTransaction change(txns_.pool(), txns_.session());
  GCL_TRY(change.reserve(sizeof(RelationCounts) + 32));
  auto guard = txns_.pool().fix_exclusive(txns_.session(), relation_.header);
  if (!guard) return guard.error();
  const auto& now = *reinterpret_cast<const RelationPage*>(guard->bytes());
  if (now.header.type != PageType::kRelation) return Errc::kNotFound;
  RelationCounts counts = now.counts;
  apply(counts);
  change.join(*guard);
  change.set(*guard, offsetof(RelationPage, counts), counts);
  change.commit();
  return counts;
}

Result<RelationCounts> Heap::add_counts(uint64_t inserted, uint64_t updated, uint64_t deleted) {
  return change_counts([=](RelationCounts& counts) {
    counts.inserted += inserted;
    counts.updated += updated;
    counts.deleted += deleted;
  });
}

Status Heap::note_vacuumed(const VacuumStats& stats) {
  auto noted = change_counts([&](RelationCounts& counts) {
    counts.vacuums = RelationCounts::vacuum_by(counts.vacuum_number() + 1, txns_.node());
    counts.live = stats.live;
    counts.dead = stats.recently_dead + stats.left;
  });
  return noted ? Status{} : Status{noted.error()};
}

}  // namespace engine

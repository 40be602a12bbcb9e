#include "extension/pg/txn/deferred_free.hpp"

#include "extension/engine/reclaim/reclaim_list.hpp"
#include "extension/pg/runtime/backend.hpp"
#include "extension/pg/runtime/ddl_hooks.hpp"

namespace gcl {

using coherence::PageId;
using engine::Dropped;
using engine::ReclaimKind;

static_assert(int(ReclaimKind::kTable) == int(RelationFile::kTable) &&
              int(ReclaimKind::kIndex) == int(RelationFile::kIndex) &&
              int(ReclaimKind::kSequence) == int(RelationFile::kSequence));

namespace {

// Only what the transaction will have dropped if it commits: a savepoint that rolls back takes its own away again.
struct Drop {
  Dropped what;
  int level;
};
std::vector<Drop> drops;
std::vector<Dropped> recorded;  // by record_deferred_frees(), which errors may leave
bool made_any = false;          // the reclaim worker has something to look at when the transaction is over

}  // namespace

PageId new_pages(RelationFile kind) {
  prepare_to_write();
  made_any = true;
  engine::TxnSystem& system = txns();
  return *until_done(nullptr, [&]() -> coherence::Result<PageId> {
    auto id = system.id_for_write();
    if (!id) return id.error();
    return engine::ReclaimList(system).allocate(*id, ReclaimKind(kind), bufmgr::PageUse::kHousekeeping);
  });
}

void pages_dropped(RelationFile kind, PageId header) {
  if (ddl_replaying()) return;
  pg_entry([&] { drops.push_back({{ReclaimKind(kind), header}, GetCurrentTransactionNestLevel()}); });
}

void pages_kept(RelationFile kind, PageId header) {
  std::erase_if(drops, [=](const Drop& d) { return d.what.kind == ReclaimKind(kind) && d.what.page == header; });
}

bool any_deferred_free() noexcept { return made_any || !drops.empty(); }

void record_deferred_frees() {
  if (drops.empty()) return;
  prepare_to_write();
  pg_entry([] {
    recorded.clear();
    for (const Drop& d : drops) recorded.push_back(d.what);
  });
  engine::TxnSystem& system = txns();
  std::span<const Dropped> rest = recorded;
  until_ok(nullptr, [&]() -> coherence::Status {
    auto id = system.id_for_write();
    if (!id) return id.error();
    return engine::ReclaimList(system).add(*id, rest);
  });
}

void deferred_frees_ended() noexcept {
  if (!any_deferred_free()) return;
  drops.clear();
  recorded.clear();
  made_any = false;
  node_state()->reclaim_wanted.store(true, std::memory_order_release);  // pairs with the reclaim worker's exchange
  wake_worker(Worker::kReclaim);
}

void deferred_frees_sub_commit(int level) noexcept {
  for (Drop& d : drops)
    if (d.level >= level) d.level = level - 1;
}

void deferred_frees_sub_abort(int level) noexcept {
  std::erase_if(drops, [=](const Drop& d) { return d.level >= level; });
  if (!made_any) return;
  node_state()->reclaim_wanted.store(true, std::memory_order_release);
  wake_worker(Worker::kReclaim);
}

}  // namespace gcl

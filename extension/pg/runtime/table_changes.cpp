#include "extension/pg/runtime/table_changes.hpp"

#include "extension/pg/runtime/backend.hpp"

extern "C" {
#include "pgstat.h"
#include "postmaster/autovacuum.h"
#include "utils/pgstat_internal.h"
}

namespace gcl {

using coherence::Errc;
using engine::RelationCounts;

namespace {

constexpr uint32_t kRoundsGone = 100;

struct Figures {
  LocalCounts totals;
  bool analyzed;
};

// The server's own counters of the table; false: it has none.
bool read_figures(Oid database, Oid table, Figures* to) {
  PgStat_EntryRef* ref = pgstat_get_entry_ref(PGSTAT_KIND_RELATION, database, table, false, nullptr);
  if (ref == nullptr || ref->shared_entry->dropped) return false;
  (void)pgstat_lock_entry_shared(ref, false);
  const PgStat_StatTabEntry& stats = reinterpret_cast<PgStatShared_Relation*>(ref->shared_stats)->stats;
  *to = {.totals = {stats.tuples_inserted, stats.tuples_updated, stats.tuples_deleted},
         .analyzed = stats.analyze_count + stats.autovac_analyze_count > 0};
  pgstat_unlock_entry(ref);
  return true;
}

// Counters that were reset start at zero.
int64 grown(int64 now, int64 told) { return now >= told ? now - told : now; }

LocalCounts untold(const LocalCounts& totals, const LocalCounts& told) {
  return {grown(totals.inserted, told.inserted), grown(totals.updated, told.updated),
          grown(totals.deleted, told.deleted)};
}

// What others have told since, without our own part of it.
int64 foreign(uint64_t now, uint64_t seen, int64 own) { return Max(int64(now - seen) - own, int64(0)); }

// (runtime.cluster-figures-for-autovacuum, runtime.vacuum-sets-all)
void feed(const ChangedTable& table, const RelationCounts& now, const LocalCounts& own) {
  const int64 inserted = foreign(now.inserted, table.seen.inserted, own.inserted);
  const int64 updated = foreign(now.updated, table.seen.updated, own.updated);
  const int64 deleted = foreign(now.deleted, table.seen.deleted, own.deleted);
  const bool vacuumed = now.vacuums != table.seen.vacuums && now.vacuumed_by() != node_pool()->node();
  if (inserted + updated + deleted == 0 && !vacuumed) return;
  PgStat_EntryRef* ref = pgstat_get_entry_ref_locked(PGSTAT_KIND_RELATION, table.database, table.table, false);
  PgStat_StatTabEntry& stats = reinterpret_cast<PgStatShared_Relation*>(ref->shared_stats)->stats;
  if (vacuumed) {
    stats.n_live_tuples = int64(now.live);
    stats.n_dead_tuples = int64(now.dead) + own.updated + own.deleted;
    stats.inserts_since_vacuum = own.inserted;
  } else {
    stats.n_live_tuples = Max(stats.n_live_tuples + inserted - deleted, 0);
    stats.n_dead_tuples += updated + deleted;
    stats.inserts_since_vacuum += inserted;
  }
  stats.changes_since_analyze += inserted + updated + deleted;
  pgstat_unlock_entry(ref);
}

// kNotFound: the pages are gone, or are another relation's.
Errc tell(ChangedTable& table) {
  Figures figures;
  if (!read_figures(table.database, table.table, &figures)) return Errc::kRestart;
  const LocalCounts own = untold(figures.totals, table.told);
  engine::Heap heap(txns(), engine::RelationId{coherence::PageId{table.header}});
  auto now = own.inserted + own.updated + own.deleted > 0 ? heap.add_counts(own.inserted, own.updated, own.deleted)
                                                          : heap.counts();
  if (!now) return now.error();
  if (!table.looked) {
    // A table never analyzed here is told its whole history: that decides when it will be.
    table.seen = figures.analyzed ? *now : RelationCounts{};
    table.looked = true;
  }
  feed(table, *now, own);
  table.told = figures.totals;
  table.seen = *now;
  return Errc::kOk;
}

ChangedTable copy_of(uint32_t i) {
  TableChanges& changes = node_state()->changes;
  SpinLockAcquire(&changes.lock);
  const ChangedTable table = changes.table[i];
  SpinLockRelease(&changes.lock);
  return table;
}

void put_back(uint32_t i, const ChangedTable& table, Errc outcome) {
  TableChanges& changes = node_state()->changes;
  SpinLockAcquire(&changes.lock);
  ChangedTable& place = changes.table[i];
  const bool same = place.database == table.database && place.table == table.table && place.header == table.header;
  if (same && outcome == Errc::kOk) place = table, place.gone = 0;
  if (same && (outcome == Errc::kNotFound || ++place.gone > kRoundsGone)) place = {};
  SpinLockRelease(&changes.lock);
}

}  // namespace

void note_open_table(Oid table, coherence::PageId header) {
  Figures figures{};
  (void)read_figures(MyDatabaseId, table, &figures);
  TableChanges& changes = node_state()->changes;
  SpinLockAcquire(&changes.lock);
  ChangedTable* place = nullptr;
  for (ChangedTable& at : changes.table) {
    if (at.database == MyDatabaseId && at.table == table) {
      place = &at;
      break;
    }
    if (place == nullptr && at.database == InvalidOid) place = &at;
  }
  if (place != nullptr && place->database == InvalidOid) {
    *place = {.database = MyDatabaseId, .table = table, .header = header.raw, .told = figures.totals};
  } else if (place != nullptr && place->header != header.raw) {  // TRUNCATE: the new pages' counts begin at zero
    place->header = header.raw;
    place->seen = {};
  }
  SpinLockRelease(&changes.lock);
}

void tell_table_changes() {
  for (uint32_t i = 0; i < kChangedTables; ++i) {
    ChangedTable table = copy_of(i);
    if (table.database == InvalidOid) continue;
    const Errc outcome = tell(table);
    if (outcome == Errc::kInterrupted || outcome == Errc::kFenced) return;
    if (outcome == Errc::kHeld) continue;  // a serializable scan; told later
    put_back(i, table, outcome);
  }
}

long table_changes_interval() { return Max(1, autovacuum_naptime) * 500L; }

}  // namespace gcl

// VACUUM: the engine finds what is dead and frees it; PostgreSQL's index code removes the entries in between.
#include "extension/pg/boundary/monotonic.hpp"
#include "extension/pg/boundary/pg_call.hpp"
#include "extension/pg/indexam/index_pages.hpp"
#include "extension/pg/runtime/backend.hpp"
#include "extension/pg/tableam/table_am.hpp"

extern "C" {
#include "access/genam.h"
#include "commands/progress.h"
#include "commands/vacuum.h"
#include "pgstat.h"
#include "postmaster/autovacuum.h"
#include "storage/bufmgr.h"
#include "storage/proc.h"
#include "storage/procarray.h"
#include "utils/backend_progress.h"
#include "utils/timestamp.h"
}

namespace gcl {

using coherence::Errc;
using coherence::Status;
using engine::Tid;

namespace {

constexpr uint32_t kWaitMs = 1000;  // for old snapshots, before line pointers are freed
constexpr uint32_t kRetryMs = 20;   // between two checks of another primary's VACUUM of the same table

struct DeadTids {
  const Tid* tid;
  size_t count;
};

bool is_dead(ItemPointer pointer, void* state) {
  const DeadTids& dead = *static_cast<DeadTids*>(state);
  const Tid wanted = tid_of(pointer);
  size_t low = 0, high = dead.count;
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (dead.tid[middle] < wanted)
      low = middle + 1;
    else
      high = middle;
  }
  return low < dead.count && dead.tid[low] == wanted;
}

void clean_up(Relation* indexes, int count, double rows, BufferAccessStrategy strategy) {
  for (int i = 0; i < count; ++i) {
    IndexVacuumInfo info{};
    info.index = indexes[i];
    info.message_level = DEBUG2;
    info.num_heap_tuples = rows;
    info.strategy = strategy;
    IndexBulkDeleteResult* stats = index_vacuum_cleanup(&info, nullptr);
    if (stats != nullptr && !stats->estimated_count)
      vac_update_relstats(indexes[i], stats->num_pages, stats->num_index_tuples, 0, false, InvalidTransactionId,
                          InvalidMultiXactId, nullptr, nullptr, false);
  }
}

class Cleaner final : public engine::IndexCleaner {
 public:
  Cleaner(Relation table, BufferAccessStrategy strategy, Relation* indexes, int count)
      : table_(table), strategy_(strategy), indexes_(indexes), count_(count) {}

  Status remove(std::span<const Tid> dead) override {
    count_page_accesses(table_);
    DeadTids tids{dead.data(), dead.size()};
    (void)take_skipped_leaves();
    const Status done = carried([this, &tids] {
      for (int i = 0; i < count_; ++i) remove_from(indexes_[i], &tids);
    });
    const bool skipped = take_skipped_leaves();
    return done && skipped ? Status(Errc::kHeld) : done;
  }

  // Under the engine's session lock: what an index gives back, it gives back once.
  Status finish(const engine::VacuumStats& stats) override {
    count_page_accesses(table_);
    return carried([this, &stats] { clean_up(indexes_, count_, double(stats.live), strategy_); });
  }

  // The pages looked at are counted as the server's own, so that vacuum_cost_delay holds here, too.
  Status passed_page(bool) override {
    count_page_accesses(table_);
    return carried([] { vacuum_delay_point(); });
  }

 private:
  // Below the engine: an ERROR of PostgreSQL's passes it as kInterrupted.
  template <class F>
  Status carried(F f) {
    try {
      pg_call(f);
    } catch (const PgError& error) {
      carry_error(error);
      return Errc::kInterrupted;
    }
    return {};
  }

  void remove_from(Relation index, DeadTids* tids) {
    IndexVacuumInfo info{};
    info.index = index;
    info.message_level = DEBUG2;
    info.num_heap_tuples = table_->rd_rel->reltuples;
    info.estimated_count = true;
    info.strategy = strategy_;
    (void)index_bulk_delete(&info, nullptr, is_dead, tids);
  }

  Relation table_;
  BufferAccessStrategy strategy_;
  Relation* indexes_;
  int count_;
};

// As the server's own lock on the table does among sessions of one primary: VACUUM waits for its turn, bounded by
// lock_timeout; autovacuum and SKIP_LOCKED do not wait.
engine::VacuumStats vacuum_in_turn(Relation rel, Cleaner& cleaner, bool wait) {
  const int64_t began = monotonic_us();
  for (;;) {
    const engine::VacuumStats stats = *until_done(rel, [&] { return heap_of(rel).vacuum(cleaner, kWaitMs); });
    if (!stats.skipped || !wait) return stats;
    if (LockTimeout > 0 && TimestampDifferenceExceeds(began, monotonic_us(), LockTimeout))
      ereport(ERROR, errcode(ERRCODE_LOCK_NOT_AVAILABLE), errmsg("canceling statement due to lock timeout"),
              errdetail("Another primary is vacuuming \"%s\".", RelationGetRelationName(rel)));
    until_ok(rel, [] { return txns().waiter().pause(kRetryMs); });
  }
}

}  // namespace

void gcl_relation_vacuum(Relation rel, VacuumParams* params, BufferAccessStrategy strategy) {
  txns().set_oldest(std::nullopt);
  pgstat_progress_start_command(PROGRESS_COMMAND_VACUUM, RelationGetRelid(rel));
  int count = 0;
  Relation* indexes = nullptr;
  vac_open_indexes(rel, RowExclusiveLock, &count, &indexes);
  Cleaner cleaner(rel, strategy, indexes, count);
  const bool wait = !IsAutoVacuumWorkerProcess() && !(params->options & VACOPT_SKIP_LOCKED);
  const engine::VacuumStats stats = vacuum_in_turn(rel, cleaner, wait);
  if (stats.held || stats.skipped) {
    vac_close_indexes(count, indexes, NoLock);
    pgstat_progress_end_command();
    ereport(IsAutoVacuumWorkerProcess() ? LOG : WARNING, errcode(ERRCODE_LOCK_NOT_AVAILABLE),
            stats.held ? errmsg("skipping vacuum of \"%s\" --- a SERIALIZABLE transaction holds what it has read of it",
                                RelationGetRelationName(rel))
                       : errmsg("skipping vacuum of \"%s\" --- another primary is vacuuming it",
                                RelationGetRelationName(rel)));
    return;
  }
  note_counted(rel);
  // Rows hold no local transaction ids: the table never keeps pg_xact from being truncated.
  const bool has_horizon = TransactionIdIsNormal(rel->rd_rel->relfrozenxid);
  const BlockNumber blocks = RelationGetNumberOfBlocks(rel);
  vac_update_relstats(rel, blocks, double(stats.live), 0, count > 0,
                      has_horizon ? GetOldestNonRemovableTransactionId(rel) : InvalidTransactionId, InvalidMultiXactId,
                      nullptr, nullptr, false);
  vac_close_indexes(count, indexes, NoLock);
  pgstat_report_vacuum(RelationGetRelid(rel), rel->rd_rel->relisshared, PgStat_Counter(stats.live),
                       PgStat_Counter(stats.recently_dead + stats.left));
  pgstat_progress_end_command();
  if (params->options & VACOPT_VERBOSE)
    ereport(INFO, errmsg("\"%s\": %u pages, %llu live rows, %llu removed, %llu line pointers freed",
                         RelationGetRelationName(rel), stats.pages, (unsigned long long)stats.live,
                         (unsigned long long)stats.removed, (unsigned long long)stats.freed));
}

}  // namespace gcl

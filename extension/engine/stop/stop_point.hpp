// Stop points: named places where a test may have a process stand still, so that an interleaving of several nodes is a
// schedule.  Rules: rules.md.
//
//   stop_at(session, StopPoint::kBlinkSplitUnlinked);   // in the engine; nothing but a load where no host is there
//
// Tests attach to a point, wait until a process stands there, let others act, and wake it (stop_table.hpp).
#pragma once

#include <atomic>
#include <cstdint>
#include <string_view>

#include "bufmgr/session.hpp"

namespace engine {

// Name for SQL, and where the process stands.
#define GCL_STOP_POINTS(POINT)                                                                                         \
  POINT(kTxnStatusWanted, "txn_status_wanted")             /* about to read an id's word: what it knows is older */    \
  POINT(kTxnCommitting, "txn_committing")                  /* COMMITTING, the clock has moved; no timestamp yet */     \
  POINT(kTxnCommitted, "txn_committed")                    /* the status is final; nobody was woken, no row hinted */  \
  POINT(kHeapRowInserted, "heap_row_inserted")             /* rows are on their page, without index entries */         \
  POINT(kHeapRowUpdated, "heap_row_updated")               /* both versions are on their pages; no index entries */    \
  POINT(kHeapRowJudged, "heap_row_judged")                 /* a change has left its row, to learn or to wait */        \
  POINT(kHeapChainFollowed, "heap_chain_followed")         /* has a newer version's place, and not read it */          \
  POINT(kHeapPageCopied, "heap_page_copied")               /* reads rows of a copy */                                  \
  POINT(kHeapHintReady, "heap_hint_ready")                 /* knows the makers' commits; no row says so yet */         \
  POINT(kHeapPrunePlanned, "heap_prune_planned")           /* has planned on a copy what to remove */                  \
  POINT(kHeapPointersUnindexed, "heap_pointers_unindexed") /* no index leads to dead pointers; they are not free */    \
  POINT(kBlinkInsertReady, "blink_insert_ready")           /* has probed and found the place; no latch yet */          \
  POINT(kBlinkSplitUnlinked, "blink_split_unlinked")       /* a page is split; its sibling has no downlink */          \
  POINT(kBlinkLeafLeft, "blink_leaf_left")                 /* a scan has copied a leaf, and goes to the next */        \
  POINT(kBlinkPageHalfDead, "blink_page_half_dead")        /* an empty page is half-dead, and still in its chain */    \
  POINT(kSequenceLeased, "sequence_leased")                /* a range of values is this node's; none was given out */  \
  POINT(kToastChunksStored, "toast_chunks_stored")         /* some chunks of a large value are stored, others not */   \
  POINT(kHoldsUnmarked, "holds_unmarked")                  /* an idle session's holds are to be given up; no mark */   \
  POINT(kHoldsMarked, "holds_marked")                      /* they are marked, and still there */                      \
  POINT(kXactPrepared, "xact_prepared")                    /* it is to commit; PostgreSQL has decided nothing */       \
  POINT(kXactLocallyCommitted, "xact_locally_committed")   /* PostgreSQL's commit is decided; the pool says nothing */ \
  POINT(kDdlLocked, "ddl_locked")                          /* every primary holds the locks of the statement */        \
  POINT(kDdlStatementSent, "ddl_statement_sent")           /* the others have the record; no answer was read */        \
  POINT(kDdlAllPrepared, "ddl_all_prepared")               /* every primary is prepared; nothing is decided */         \
  POINT(kDdlCommitUntold, "ddl_commit_untold")             /* decided; the others do not know */                       \
  POINT(kDdlReplayed, "ddl_replayed")                      /* an apply worker has run the statement; not answered */

enum class StopPoint : uint8_t {
#define GCL_STOP_POINT_CONSTANT(constant, name) constant,
  GCL_STOP_POINTS(GCL_STOP_POINT_CONSTANT)
#undef GCL_STOP_POINT_CONSTANT
      kCount
};
inline constexpr int kStopPoints = int(StopPoint::kCount);

inline constexpr const char* kStopPointNames[] = {
#define GCL_STOP_POINT_NAME(constant, name) name,
    GCL_STOP_POINTS(GCL_STOP_POINT_NAME)
#undef GCL_STOP_POINT_NAME
};
static_assert(sizeof kStopPointNames / sizeof kStopPointNames[0] == size_t(kStopPoints));
static_assert(kStopPoints <= 64);  // StopTable's set of them is a word

inline const char* stop_point_name(StopPoint point) noexcept { return kStopPointNames[int(point)]; }
// kCount: there is none of that name.
StopPoint stop_point_named(std::string_view name) noexcept;

// What the process above does when one of its threads comes to a point: implemented in extension/pg and in tests.
class StopHost {
 public:
  virtual ~StopHost() = default;
  // Returns at once, or when the stop is over (stop.ends-by-itself).  Never fails (stop.changes-nothing).
  virtual void reached(StopPoint point, bufmgr::Session& session) noexcept = 0;
};

// Of the process; null: no point stops anybody.  Set before the first session begins, and not changed while there is
// one: so a relaxed load finds it.
inline std::atomic<StopHost*> stop_host{nullptr};

inline void stop_at([[maybe_unused]] bufmgr::Session& session, StopPoint point) noexcept {
#ifndef NDEBUG
  VERIFY(session.guards_held() == 0);  // stop.nothing-latched
#endif
  if (StopHost* host = stop_host.load(std::memory_order_relaxed)) [[unlikely]]
    host->reached(point, session);
}

}  // namespace engine

#include "extension/pg/runtime/backend.hpp"

#include <algorithm>
#include <bitset>
#include <unordered_map>

#include "coherence/base/verify.hpp"
#include "extension/engine/reclaim/reclaimer.hpp"
#include "extension/engine/serializable/transaction_holds.hpp"
#include "extension/pg/boundary/wait_events.hpp"
#include "extension/pg/runtime/database_locale.hpp"
#include "extension/pg/runtime/ddl_hooks.hpp"
#include "extension/pg/runtime/mixed_commits.hpp"
#include "extension/pg/runtime/orphan.hpp"
#include "extension/pg/runtime/own_wait.hpp"
#include "extension/pg/runtime/relation_record.hpp"
#include "extension/pg/runtime/serializable.hpp"
#include "extension/pg/runtime/server_stop.hpp"
#include "extension/pg/runtime/waiter.hpp"

extern "C" {
#include "access/parallel.h"
#include "access/subtrans.h"
#include "postmaster/bgworker.h"
#include "postmaster/interrupt.h"
#include "storage/proc.h"
#include "utils/inval.h"
}

namespace gcl {

namespace {

bool (*waits_end)() noexcept = nullptr;  // of this process; null: nothing of the kind

// Waits end when PostgreSQL would handle an interrupt; never inside a critical section or a held-off region.
class BackendInterrupts final : public bufmgr::Interrupts {
 public:
  bool pending() noexcept override {
    (void)postmaster_gone();
    if (waits_end != nullptr && waits_end()) return true;
    return InterruptPending && InterruptHoldoffCount == 0 && CritSectionCount == 0 &&
           (ProcDiePending || QueryCancelPending || ProcSignalBarrierPending || ClientConnectionLost);
  }
  void waits(coherence::Wait what) noexcept override {
    static_assert(int(coherence::Wait::kPageLatch) == 1 &&
                  int(coherence::Wait::kRedoRing) == int(WaitEvent::kRedoRing) + 1);
    if (what == coherence::Wait::kNone)
      pgstat_report_wait_end();
    else
      pgstat_report_wait_start(wait_event(WaitEvent(int(what) - 1)));
  }
  bool room_comes(uint32_t tries) noexcept override;
};

struct HeapKey {
  uint64_t header;
  Oid relid, file;
  bool operator==(const HeapKey&) const = default;
};
struct HeapKeyHash {
  size_t operator()(const HeapKey& k) const {
    return (k.header * 0x9E3779B97F4A7C15ull) ^ (uint64_t{k.relid} << 20) ^ k.file;
  }
};

// Everything a process has of the pool.
struct Attached {
  BackendInterrupts interrupts;
  BackendWaiter waiter;
  NodeWakeupEvents wakeup_events;
  std::unique_ptr<bufmgr::Session> session;
  std::unique_ptr<engine::TxnSystem> txns;
  std::unique_ptr<engine::TransactionHolds> holds;
  std::unordered_map<HeapKey, std::unique_ptr<engine::Heap>, HeapKeyHash> heaps;
  struct Recent {
    HeapKey key;
    engine::Heap* heap;
  } recent[16] = {};          // of `heaps`, by oid
  std::bitset<1024> changed;  // tables whose relcache entries were invalidated, by oid
  SessionCount* counted = nullptr;
  bool works_for_gcl = false;              // does the other primaries' DDL
  const volatile bool* serving = nullptr;  // whether this session may use gcl tables; null: always
};

Attached* attached = nullptr;
void (*at_first_attach[2])();
int first_attach_callbacks = 0;
bool any_locale = false;  // attach_for_any_locale() is at work
int written_level = 0;    // levels up to here have local xids that the engine knows

// Relations that were dropped, or made in vain, are freed in the background, here or on another primary: a session that
// needs room before that waits for it, as it would have waited for the statement that dropped them.
constexpr uint32_t kRoomPauseMs = 5, kRoomTriesMax = 2000;

bool BackendInterrupts::room_comes(uint32_t tries) noexcept {
  if (attached == nullptr || attached->counted != &node_state()->backends) return false;
  if (pending() || tries >= kRoomTriesMax) return false;
  auto due = engine::Reclaimer::due_anywhere(*attached->txns);
  if (!due.ok() || !*due) return false;
  wake_worker(Worker::kReclaim);
  (void)postmaster_gone();
  pg_usleep(kRoomPauseMs * 1000);
  return true;
}

// A table has another file now, or is gone, or nothing of that: its handle goes at the end of the transaction, when no
// scan uses it.  So there are never more handles than tables and what one transaction has replaced.
void table_changed(Datum, Oid relid) {
  if (attached == nullptr) return;
  if (OidIsValid(relid))
    attached->changed.set(relid % attached->changed.size());
  else
    attached->changed.set();
}

void forget_changed_tables() noexcept {
  if (attached->changed.none()) return;
  std::ranges::fill(attached->recent, Attached::Recent{});
  std::erase_if(attached->heaps,
                [](const auto& heap) { return attached->changed.test(heap.first.relid % attached->changed.size()); });
  attached->changed.reset();
}

void on_exit(int, Datum) {
  // Ours runs before the server's own abort (callbacks run last in, first out), and the abort needs the session.
  AbortOutOfAnyTransaction();
  detach_session();
}

[[noreturn]] void refuse() {
  if (!node_configured())
    ereport(ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE), errmsg("this server takes part in no gcl pool"),
            errhint("Add gcl to shared_preload_libraries and set gcl.pool, or use gclctl to make a cluster."));
  raise(coherence::Errc::kFenced, nullptr);
}

[[noreturn]] void raise_shutdown() {
  ereport(ERROR, errcode(ERRCODE_ADMIN_SHUTDOWN), errmsg("the gcl node is shutting down"));
  pg_unreachable();
}

}  // namespace

void end_waits_when(bool (*condition)() noexcept) noexcept { waits_end = condition; }

namespace {

void attach(SessionCount& count, bool is_last = false) {
  bufmgr::BufferPool* pool = node_pool();
  NodeState* node = node_state();
  if (pool->fenced()) raise(coherence::Errc::kFenced, nullptr);
  if (!count.begin()) raise_shutdown();
  if (node->backends.closed() && !is_last) {  // the worker that closed it looks for workers afterwards
    count.end();
    raise_shutdown();
  }
  static bool registered = false;
  if (!registered) {
    end_with_postmaster();
    before_shmem_exit(on_exit, Datum{0});
    for (int i = 0; i < first_attach_callbacks; ++i) at_first_attach[i]();
    CacheRegisterRelcacheCallback(table_changed, Datum{0});
  }
  registered = true;
  attached = new Attached;
  attached->counted = &count;
  attached->session = pool->attach(coherence::SessionId{uint16_t(MyProc->pgprocno)}, attached->interrupts, wal_sink());
  count_page_accesses_of(attached->session.get());
  attached->txns = std::make_unique<engine::TxnSystem>(*pool, *attached->session, *node_txn_shared(), attached->waiter,
                                                       attached->wakeup_events);
  attached->holds = std::make_unique<engine::TransactionHolds>(*attached->txns, *node_holds());
  attached->waiter.serve(*attached->txns);
  if (auto begun = attached->txns->sub_begin(GetCurrentTransactionNestLevel()); !begun) {
    detach_session();
    raise(begun.error(), nullptr);
  }
}

// Our own workers bring the catalogs up to date.  Any other process, autovacuum too, would use a table without the
// index that another primary has made meanwhile.
bool works_for_gcl() { return MyBackendType == B_BG_WORKER && strcmp(MyBgworkerEntry->bgw_library_name, "gcl") == 0; }

void wait_until_ready() {
  NodeState* node = node_state();
  if (node == nullptr || node_pool() == nullptr) return;
  // The member worker joins right after recovery; clients may be a moment earlier.
  for (int i = 0; !node->ready.load(std::memory_order_acquire); ++i) {
    if (node_pool()->fenced()) return;
    if (works_for_gcl() ? server_stops() : ShutdownRequestPending) raise_shutdown();
    if (i > 3000)
      ereport(ERROR, errcode(ERRCODE_CANNOT_CONNECT_NOW), errmsg("the gcl node has not joined its pool yet"),
              errhint("The log of the server says what keeps its member worker from it."));
    pause_in_wait(10000);
  }
}

Attached& attached_here() {
  if (attached != nullptr) {
    // Not while a transaction ends: nothing may raise there.
    if (attached->serving != nullptr && !*attached->serving && IsTransactionState()) ddl_require_serving();
    return *attached;
  }
  wait_until_ready();
  if (node_pool() == nullptr || node_state() == nullptr) refuse();
  if (MyBackendType != B_BG_WORKER && !any_locale)
    require_database_locale();  // an apply worker says it in the coordinator's answer
  if (!works_for_gcl()) ddl_require_serving();
  attach(node_state()->backends);
  if (works_for_gcl()) {
    node_state()->ddl_workers.fetch_add(1, std::memory_order_seq_cst);
    attached->works_for_gcl = true;
    return *attached;
  }
  // The launcher, before it leaves, says that we do not serve, and looks then whether a session is attached.
  if (!ddl_serving()) {
    detach_session();
    ddl_require_serving();
    return attached_here();  // it does, by now
  }
  attached->serving = ddl_serving_flag();
  return *attached;
}

Attached& here() {
  Attached& at = attached_here();
  if (XactIsoLevel == XACT_SERIALIZABLE && IsTransactionState())
    use_in_serializable(*at.holds, *at.txns, !at.works_for_gcl && !(MyProc->statusFlags & PROC_IN_VACUUM));
  return at;
}

}  // namespace

bufmgr::BufferPool& pool() {
  here();
  return *node_pool();
}
bufmgr::Session& session() { return *here().session; }
engine::TxnSystem& txns() { return *here().txns; }
engine::Waiter& waiter() { return here().waiter; }
bool serves() noexcept {
  return node_pool() != nullptr && !node_pool()->fenced() && ddl_serving() && !serializable_is_local() &&
         has_pools_locale();
}
void attach_for_any_locale() {
  any_locale = true;
  PG_TRY();
  { (void)here(); }
  PG_FINALLY();
  { any_locale = false; }
  PG_END_TRY();
}
engine::TxnSystem* attached_txns() noexcept { return attached != nullptr ? attached->txns.get() : nullptr; }

static engine::Heap& handle_of(Attached& at, Relation table) {
  const HeapKey key{relation_page(table).raw, RelationGetRelid(table), table->rd_node.relNode};
  Attached::Recent& recent = at.recent[key.relid % std::size(at.recent)];
  if (recent.key == key) return *recent.heap;
  auto found = at.heaps.find(key);
  if (found != at.heaps.end()) return *(recent = {key, found->second.get()}).heap;
  if (MyDatabaseId != InvalidOid) note_open_table(key.relid, coherence::PageId{key.header});
  return *pg_entry([&]() -> engine::Heap* {
    auto heap = std::make_unique<engine::Heap>(*at.txns, engine::RelationId{coherence::PageId{key.header}}, key.relid);
    return at.heaps.emplace(key, std::move(heap)).first->second.get();
  });
}

engine::Heap& heap_of(Relation table) {
  Attached& at = here();
  engine::Heap& heap = handle_of(at, table);
  if (at.session->holding()) {
    const HoldsOf holds = holds_of(table);
    heap.set_holds(holds.reads, holds.writes);
  }
  return heap;
}

void require_unfenced() {
  if (bufmgr::BufferPool* pool = node_pool(); pool != nullptr && pool->fenced())
    raise(coherence::Errc::kFenced, nullptr);
}

namespace {

// REQUIRES: its holds are given up.
[[noreturn]] void refuse_change() {
  const coherence::Errc why = attached->holds->gave_up();
  if (why == coherence::Errc::kNoHolds) refuse_too_many_holds();
  if (why == coherence::Errc::kConflict) refuse_stale();
  refuse_given_up(attached->holds->idle_ms());
}

bool changed_rows() {
  const engine::Transaction& current = attached->txns->current();
  return transaction_writes() || (current.wrote() && !current.only_holds());
}

}  // namespace

bool holds_given_up() noexcept { return attached != nullptr && attached->holds->given_up(); }

// runtime.given-up-reads-on
void meet_given_up() {
  if (changed_rows()) refuse_change();
  attached->holds->read_on();
}

bool give_up_holds(coherence::Errc why) {
  if (attached == nullptr || changed_rows()) return false;
  return attached->holds->give_up(why) || holds_given_up();
}

void keep_holds(bool changes) {
  if (attached != nullptr && !attached->holds->keep() && changes) refuse_change();
}

void prepare_to_write() {
  if (holds_given_up()) refuse_change();
  require_holds();
  const int level = GetCurrentTransactionNestLevel();
  if (level <= written_level) return;
  if (written_level == 0) ForceSyncCommit();
  // Outer levels that have not written yet get their ids together with this one's.
  TransactionId xid = GetCurrentTransactionId();
  for (int at = level; at > std::max(written_level, 1); --at) {
    txns().set_host_xid(xid, at);
    xid = SubTransGetParent(xid);
  }
  if (written_level == 0) txns().set_host_xid(GetTopTransactionId());
  written_level = level;
}

bool transaction_writes() noexcept { return written_level > 0; }

void savepoint_ended(int level) noexcept { written_level = std::min(written_level, level - 1); }

void count_in() {
  if (IsParallelWorker()) return;  // the leader counts, and outlives it
  txns().count_in();
}

bool counts_in() noexcept {
  return attached != nullptr && node_txn_shared()->slot(MyProc->pgprocno).oldest.load(std::memory_order_relaxed) != 0;
}

void forget_transaction() noexcept {
  forget_local_changes();
  forget_serializable();
  written_level = 0;
  if (attached == nullptr) return;
  VERIFY(!attached->session->holding());
  attached->txns->give_back_id_ahead();  // a portal that ended with the transaction had kept it
  attached->txns->set_oldest(std::nullopt);
  attached->session->release_all();
  forget_changed_tables();
  forget_carried_error();
}

void end_holds() noexcept {
  if (attached != nullptr) attached->holds->end();
}

coherence::Status wait_for_holder() { return attached != nullptr ? attached->holds->wait() : coherence::Status(); }

void call_at_first_attach(void (*callback)()) {
  VERIFY(first_attach_callbacks < int(std::size(at_first_attach)));
  at_first_attach[first_attach_callbacks++] = callback;
}

void attach_worker(bool is_last) { attach(node_state()->workers, is_last); }

void detach_session() noexcept {
  Attached* at = attached;
  if (at == nullptr) return;
  at->session->release_all();
  attached = nullptr;
  count_page_accesses_of(nullptr);
  stop_waiting();
  own_wait_forget();
  at->txns->release_session_lock();    // FATAL has jumped over the VACUUM that had it
  at->txns->set_oldest(std::nullopt);  // the slot is the next process's, and counts for the horizon
  at->heaps.clear();
  at->holds.reset();
  at->txns.reset();
  at->session.reset();
  if (at->works_for_gcl) node_state()->ddl_workers.fetch_sub(1, std::memory_order_seq_cst);
  at->counted->end();
  delete at;
}

}  // namespace gcl

#include "extension/pg/ddl/base/ddl_port.hpp"

#include <algorithm>
#include <new>
#include <span>

#include "extension/pg/runtime/backend.hpp"
#include "extension/pg/runtime/database_locale.hpp"
#include "extension/pg/runtime/journal.hpp"
#include "extension/pg/runtime/node_events.hpp"
#include "extension/pg/runtime/orphan.hpp"
#include "extension/pg/runtime/own_wait.hpp"
#include "extension/pg/runtime/settings.hpp"
#include "extension/pg/txn/snapshots.hpp"

extern "C" {
#include "access/xact.h"
#include "miscadmin.h"
#include "storage/proc.h"
}

namespace gcl {
namespace {

constexpr uint32_t kJournalPauseMs = 10, kRecordPauseMs = 10;
constexpr uint64_t kLogShare = 16;  // of the pool's pages: the DDL log has one at most

engine::DdlLog log_now() { return {pool(), session(), ddl_channel()}; }

}  // namespace

bool ddl_pool_attached() noexcept { return node_pool() != nullptr; }
bool ddl_pool_fenced() noexcept { return node_pool() == nullptr || node_pool()->fenced(); }
void ddl_require_unfenced() { require_unfenced(); }
const char* ddl_fence_reason() { return fence_reason(); }
int ddl_pool_encoding() { return pool_encoding(); }
bool ddl_local_administration() noexcept { return settings.local_administration; }
void ddl_attach_for_any_locale() { attach_for_any_locale(); }
void ddl_require_locale() { require_database_locale(); }
bool ddl_postmaster_gone() noexcept { return postmaster_gone(); }
uint8_t ddl_node() { return node_pool()->node().value; }
uint64_t ddl_incarnation() { return node_pool()->coherence_node().incarnation(); }
uint32_t ddl_session() { return uint32_t(MyProc->pgprocno); }

bool ddl_sessions_left() noexcept {
  return node_state()->backends.now() > node_state()->ddl_workers.load(std::memory_order_seq_cst);
}

engine::DdlChannel& ddl_channel() {
  alignas(engine::DdlChannel) static std::byte place[sizeof(engine::DdlChannel)];
  static engine::DdlChannel* channel = nullptr;
  if (!channel) {
    const bufmgr::RegionSpan region = pool().region(bufmgr::Region::kDdl);
    channel =
        new (place) engine::DdlChannel(session().memory(), region.at, region.bytes, pool().nodes_max(), pool().node());
  }
  return *channel;
}

engine::DdlLocks& ddl_locks() { return ddl_channel().locks(); }
engine::DdlSlot ddl_slot(int number) { return ddl_channel().slot(number); }

static coherence::WakeupEvent& slot_event(int slot) noexcept {
  return node_pool()->coherence_node().event(uint16_t(kDdlSlotEvent + slot));
}

std::atomic<uint32_t>& ddl_wakeup_event() noexcept {
  return node_pool()->coherence_node().event(kDdlLauncherEvent).count;
}

std::atomic<uint32_t>& ddl_slot_wakeup_event(int slot) noexcept { return slot_event(slot).count; }

void ddl_attend(int slot, bool here) noexcept {
  slot_event(slot).attended.store(here, std::memory_order_seq_cst);  // pairs with ddl_wake_slot()
}

void ddl_wake_node(uint8_t node) noexcept {
  node_pool()->coherence_node().wake(coherence::NodeId{node}, kDdlLauncherEvent);
}

void ddl_wake_others(coherence::NodeSet nodes) noexcept {
  for (uint8_t n = 0; n < node_pool()->nodes_max(); ++n)
    if (n != ddl_node() && nodes.has(coherence::NodeId{n})) ddl_wake_node(n);
}

// A primary that is not asked may have joined meanwhile, and taken part all the same.
void ddl_wake_slot(int slot, coherence::NodeSet asked) noexcept {
  for (uint8_t n = 0; n < node_pool()->nodes_max(); ++n) {
    const coherence::NodeId node{n};
    node_pool()->coherence_node().wake(node, uint16_t(kDdlSlotEvent + slot),
                                       asked.has(node) ? kDdlLauncherEvent : coherence::Wakeup::kNone);
  }
}

void ddl_statement_begins() { set_transaction_time(); }

uint64_t ddl_raw_txn_id() {
  (void)session();
  prepare_to_write();
  return until_done(nullptr, [] { return txns().id_for_write(); })->raw;
}

static DdlOutcome outcome_of(engine::TxnStatus status) {
  if (status.running()) return DdlOutcome::kUndecided;
  return status.committed() ? DdlOutcome::kCommitted : DdlOutcome::kRolledBack;
}

DdlOutcome ddl_outcome(uint64_t transaction) {
  return outcome_of(*until_done(nullptr, [=] { return txns().status(engine::TxnId{transaction}); }));
}

DdlOutcome ddl_outcome_now(uint64_t transaction) noexcept {
  const auto status = txns().status(engine::TxnId{transaction});
  return status ? outcome_of(*status) : DdlOutcome::kUnknown;
}

coherence::NodeInfo ddl_primary(coherence::NodeId node) noexcept { return node_pool()->coherence_node().info(node); }

namespace {

template <class Which>
size_t count_in_doubt(Which which) {
  return *until_done(nullptr, [=]() -> coherence::Result<size_t> {
    const auto found = txns().in_doubt();
    if (!found) return found.error();
    return size_t(std::count_if(found->begin(), found->end(), [=](const auto& one) { return which(one.id); }));
  });
}

}  // namespace

size_t ddl_in_doubt(coherence::NodeId node) {
  return count_in_doubt([=](engine::TxnId id) { return id.node() == node; });
}

bool ddl_is_in_doubt(engine::TxnId which) {
  return count_in_doubt([=](engine::TxnId id) { return id == which; }) != 0;
}

static coherence::Status end_dead_primaries() {
  const coherence::Node& here = node_pool()->coherence_node();
  for (uint8_t n = 0; n < node_pool()->nodes_max(); ++n) {
    const coherence::NodeId node{n};
    while (here.unrecorded().has(node)) GCL_TRY(txns().waiter().pause(kRecordPauseMs));  // repair.recorded-first
    if (!here.info(node).dead()) continue;
    const auto ended = txns().end_dead_node(node);
    if (!ended) return ended.error();
  }
  return {};
}

size_t ddl_undecided(coherence::NodeId* node) {
  return *until_done(nullptr, [=]() -> coherence::Result<size_t> {
    GCL_TRY(end_dead_primaries());
    const auto found = txns().in_doubt();
    if (!found) return found.error();
    if (!found->empty()) *node = found->front().id.node();
    return found->size();
  });
}

DdlOutcome ddl_decide_in_doubt(engine::TxnId id, bool commit) {
  coherence::Problem problem;
  coherence::Errc unjournaled = coherence::Errc::kOk;
  const DdlOutcome outcome = *until_done(nullptr, [&]() -> coherence::Result<DdlOutcome> {
    const auto record = [&](bool committed) -> coherence::Status {  // journal.verdicts-beat-logs
      for (;;) {
        coherence::Status noted = note_decision(pool(), id, committed, &problem);
        if (noted.error() != coherence::Errc::kBusy) {
          unjournaled = noted.error();
          return noted;
        }
        GCL_TRY(txns().waiter().pause(kJournalPauseMs));
      }
    };
    const auto committed = txns().decide_in_doubt(id, commit, record);
    if (committed) return *committed ? DdlOutcome::kCommitted : DdlOutcome::kRolledBack;
    if (committed.error() == coherence::Errc::kNotFound || unjournaled != coherence::Errc::kOk)
      return DdlOutcome::kUndecided;
    return committed.error();
  });
  if (unjournaled != coherence::Errc::kOk) raise_unjournaled(unjournaled, problem);
  return outcome;
}

void ddl_note_life(coherence::NodeId node, uint64_t life) {
  if (node_pool()->coherence_pool().durable_path() == nullptr) return;
  coherence::Problem problem;
  const recovery::Life entry{node, life};
  for (;;) {
    const auto noted = pg_entry(
        [&] { return recovery::note_life(node_pool()->coherence_pool(), entry, recovery::Patience::kTry, &problem); });
    if (noted) return;
    if (noted.error() != coherence::Errc::kBusy) raise_unjournaled(noted.error(), problem);
    pause_in_wait(kJournalPauseMs * 1000L);
  }
}

coherence::NodeSet ddl_dead_primaries() noexcept { return node_pool()->coherence_node().repairable(); }

namespace {
// It learns when the waits that begin now will have lasted for long (pg_txn.waits-timed-from-start).
void tell_member() noexcept { node_pool()->coherence_node().wake(coherence::NodeId{ddl_node()}, kMemberEvent); }
}  // namespace

void ddl_waits_for_replies() { own_wait_begins(OwnWaitKind::kReplies); }
void ddl_waits_for_lock(engine::DdlHolder holder) {
  own_wait_begins(OwnWaitKind::kDdlLock, {.pid = int(holder.pid()), .node = holder.node().value});
  tell_member();
}
void ddl_still_waits() noexcept { own_wait_goes_on(); }
void ddl_waits_no_more() noexcept { own_wait_ends(); }
void ddl_check_wait() { own_wait_check(); }
void ddl_in_transaction(uint64_t transaction) noexcept {
  own_ddl_transaction(transaction);
  if (transaction != 0) tell_member();
}
void ddl_works_for(uint64_t transaction, uint8_t coordinator, uint32_t pid) noexcept {
  own_ddl_transaction(transaction, {.pid = int(pid), .node = coordinator});
}

uint64_t ddl_log_append(const char* record, uint32_t bytes, uint64_t transaction) {
  const std::span<const std::byte> span{reinterpret_cast<const std::byte*>(record), bytes};
  return *until_done(nullptr, [=] { return log_now().append(span, transaction); });
}

void ddl_log_first(engine::DdlLogEntry* entry) {
  (void)until_done(nullptr, [=] { return log_now().first(entry); });
}

void ddl_log_next(engine::DdlLogEntry* entry) {
  (void)until_done(nullptr, [=] {
    engine::DdlLogEntry from = *entry;
    auto outcome = log_now().next(&from);
    if (outcome) *entry = from;
    return outcome;
  });
}

bool ddl_log_read(const engine::DdlLogEntry& entry, char* to) {
  return *until_done(nullptr, [&]() -> coherence::Result<bool> {
    auto outcome = log_now().read(entry, reinterpret_cast<std::byte*>(to));
    if (outcome) return true;
    if (outcome.error() == coherence::Errc::kNotFound) return false;
    return outcome.error();
  });
}

engine::DdlLogExtent ddl_log_extent() {
  engine::DdlLogExtent extent;
  (void)until_done(nullptr, [&] { return log_now().extent(&extent); });
  return extent;
}

uint64_t ddl_log_pages_max() { return pool().pages() / kLogShare; }

void ddl_log_remove_applied() {
  (void)until_done(nullptr, [] { return log_now().remove_applied(); });
}

void ddl_flush_log() { flush_log(); }

int ddl_announced_primaries() noexcept { return settings.primaries; }

}  // namespace gcl

#include "extension/pg/ddl/coordinate/ddl_outbox.hpp"
#include "extension/pg/boundary/monotonic.hpp"

#include "extension/pg/ddl/node/ddl_node_state.hpp"
#include "extension/pg/ddl/node/ddl_wakeup.hpp"
#include "extension/pg/runtime/stop_points.hpp"

extern "C" {
#include "utils/timestamp.h"
}

namespace gcl {

using coherence::NodeId;
using coherence::NodeSet;
using engine::DdlHeader;
using engine::DdlKind;
using engine::DdlMembers;
using engine::DdlReply;

namespace {

// A statement with NOWAIT waits no longer for a worker to end what has ended.
constexpr TimestampTz kStaleUs = 2'000'000;
constexpr int kReservedSlots = 3;

// A superuser finds a slot when users have taken all they can get (ddl.slot-wait-bounded).
int kept_for_superusers() { return Min(kReservedSlots, ddl_channel().slots() / 4); }

bool take_a_slot(const char* database, int* taken) {
  *taken = ddl_channel().free_slot(database, superuser() ? 0 : kept_for_superusers());
  return *taken >= 0 && ddl_slot(*taken).take(ddl_me(), uint64_t(GetCurrentTimestamp()));
}

[[noreturn]] void raise_no_slot() {
  ereport(ERROR, (errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED),
                  errmsg("too many transactions do DDL or LOCK TABLE on gcl tables at once"),
                  errdetail("The pool has room for %d of them, %d of these for superusers.", ddl_channel().slots(),
                            kept_for_superusers()),
                  errhint("gcl_stat_ddl shows whose they are.")));
  pg_unreachable();
}

}  // namespace

uint64_t ddl_transaction_id(int slot, uint64_t first) { return uint64_t(slot + 1) << 56 | first; }

void DdlOutbox::take(const char* database, bool nowait) {
  strlcpy(database_, database, sizeof database_);
  const int64_t began = monotonic_us();
  int taken;
  for (;;) {
    prepare_for_wakeup();
    if (take_a_slot(database_, &taken)) break;
    ddl_locks().want(engine::DdlWanted::slot());  // ddl_log.want-then-retry
    if (take_a_slot(database_, &taken)) break;
    if (ddl_pool_fenced()) raise_fenced();
    if (taken >= 0) continue;  // another session was quicker
    if (nowait || monotonic_us() - began > kSlotWaitMaxMs * 1000) raise_no_slot();
    sleep_until_wakeup(WaitEvent::kDdlSlot, ms_of_lock_timeout(began, "Too many transactions do DDL or LOCK TABLE."));
  }
  slot_ = taken;
  while (!slot().all_have_dealt()) {  // ddl_log.slot-given-up-early
    if (ddl_pool_fenced()) raise_fenced();
    sleep_until_wakeup(WaitEvent::kDdlAnswers);
    prepare_for_wakeup();
  }
  done_with_wakeups();
}

void DdlOutbox::give_up() {
  if (slot_ < 0) return;
  if (used()) ddl_in_transaction(0);
  if (used()) (void)slot().acknowledge(last_, true, {});
  slot().give_up(ddl_me());
  *this = DdlOutbox{};
}

// The reply's text is SQLSTATE, a line break, the message, and a hint if there is one behind kReplyHint.
void DdlOutbox::raise_reply(NodeId node) {
  char text[engine::kDdlReplyBytes + 1];
  const uint32_t bytes = slot().reply_text(node, text);
  text[bytes] = 0;
  int code = ERRCODE_INTERNAL_ERROR;
  const char* message = text;
  char* hint = strchr(text, kReplyHint);
  if (hint) *hint++ = 0;
  if (bytes > 6 && text[5] == '\n') {
    code = MAKE_SQLSTATE(text[0], text[1], text[2], text[3], text[4]);
    message = text + 6;
  }
  ereport(ERROR,
          (errcode(code), errmsg("primary %d: %s", node.value, message), hint && *hint ? errhint("%s", hint) : 0));
  pg_unreachable();
}

// Whether all primaries that the last message is for have dealt with it; the first that failed is put into *failed.
bool DdlOutbox::answered(NodeId* failed, NodeSet* missing) {
  bool all = true;
  if (missing) *missing = {};
  for (NodeSet left = to_.nodes; !left.empty(); left = left.without(left.first())) {
    const NodeId node = left.first();
    switch (slot().reply_of(node, to_.incarnation[node.value], last_)) {
      case DdlReply::kPending:
        all = false;
        if (missing) *missing = missing->with(node);
        break;
      case DdlReply::kFailed:
        if (failed && !failed->valid()) *failed = node;
        break;
      case DdlReply::kDone:
      case DdlReply::kGone:
        break;
    }
  }
  return all;
}

// An answer that came just when the heartbeat did is not late: its wakeup is on its way, by the launcher, and comes
// now. REQUIRES: prepared for wakeups.
static void count_if_late(bool woken) noexcept {
  if (!woken && !sleep_until_wakeup_uninterrupted())
    ddl_node_state().counts.answers_found_late.fetch_add(1, std::memory_order_relaxed);
}

void DdlOutbox::wait_answered(bool raise_failure) {
  NodeId failed;
  bool woken = true;
  prepare_for_wakeup();
  while (!answered(raise_failure ? &failed : nullptr) && !failed.valid()) {
    if (ddl_pool_fenced()) raise_fenced();
    ddl_check_wait();
    woken = sleep_until_wakeup(WaitEvent::kDdlAnswers);
  }
  count_if_late(woken);
  done_with_wakeups();
  if (failed.valid()) raise_reply(failed);
}

void DdlOutbox::wait_or_cancel(bool raise_failure) {
  // A message that an ERROR left behind is cancelled already: the wait for it is short.
  if (raise_failure) ddl_waits_for_replies();
  PG_TRY();
  { wait_answered(raise_failure); }
  PG_CATCH();
  {
    ddl_waits_no_more();
    slot().cancel(last_);  // a worker that waits for a lock for us can stop
    ddl_wake_others(to_.nodes);
    PG_RE_THROW();
  }
  PG_END_TRY();
  ddl_waits_no_more();
}

uint64_t DdlOutbox::post(DdlKind kind, const char* part, uint32_t bytes, uint32_t offset, uint32_t total) {
  if (first_ == 0) {
    first_ = slot().sequence() + 1;
    ddl_in_transaction(ddl_transaction_id(slot_, first_));
  }
  DdlHeader header{};
  header.transaction = first_;
  header.log_number = log_number_;
  header.to = to_.nodes;
  header.bytes = bytes;
  header.total = total;
  header.offset = offset;
  header.pid = uint32_t(MyProcPid);
  header.kind = kind;
  header.right = right_;
  header.coordinator = ddl_node();
  header.lock = uint8_t(lock_);
  header.of_cluster = of_cluster_;
  header.holder = ddl_me();
  header.posted = GetCurrentTimestamp();
  strlcpy(header.database, database_, sizeof header.database);
  last_ = slot().post(header, part);
  ddl_node_state().counts.messages[int(kind)].fetch_add(1, std::memory_order_relaxed);
  ddl_wake_slot(slot_, to_.nodes);
  return last_;
}

void DdlOutbox::send(DdlKind kind, StringInfo body, const DdlMembers& to) {
  if (last_) wait_or_cancel(false);  // ddl_log.owner-posts: one that an ERROR left behind
  to_ = to;
  const uint32_t total = uint32_t(body->len), window = slot().window_bytes();
  uint32_t offset = 0;
  do {
    const uint32_t bytes = Min(window, total - offset);
    (void)post(kind, body->data + offset, bytes, offset, total);
    if (kind == DdlKind::kStatement || kind == DdlKind::kLast) stop_here(StopPoint::kDdlStatementSent);
    wait_or_cancel(true);
    offset += bytes;
  } while (offset < total);
}

bool DdlOutbox::tell(DdlKind kind, StringInfo body) {
  const uint32_t bytes = body ? uint32_t(body->len) : 0;
  if (bytes > slot().window_bytes()) return false;
  to_ = members();
  (void)post(kind, body ? body->data : nullptr, bytes, 0, bytes);
  return true;
}

void DdlOutbox::wait_for_the_last() noexcept {
  prepare_for_wakeup();
  while (!answered(nullptr) && !ddl_pool_fenced() && !ddl_postmaster_gone()) sleep_until_wakeup_uninterrupted();
  done_with_wakeups();
}

void DdlOutbox::tell_local_drops() {
  for (NodeSet left = to_.nodes; !left.empty(); left = left.without(left.first())) {
    const NodeId node = left.first();
    if (slot().reply_of(node, to_.incarnation[node.value], last_) != DdlReply::kDone) continue;
    char text[engine::kDdlReplyBytes + 1];
    text[slot().reply_text(node, text)] = 0;
    if (*text != '\0')
      ereport(NOTICE, (errmsg("primary %d: drop cascades to what is this primary's own: %s", node.value, text)));
  }
}

// "2, 3"
static void write_nodes(NodeSet nodes, char* to, size_t room) {
  to[0] = '\0';
  for (; !nodes.empty(); nodes = nodes.without(nodes.first()))
    snprintf(to + strlen(to), room - strlen(to), "%s%d", to[0] ? ", " : "", nodes.first().value);
}

// Nothing can be undone any more: so a warning names the primaries without an answer, once, and the wait goes on
// (ddl.callbacks-never-raise).
void DdlOutbox::wait_for_commits() noexcept {
  const int64_t began = monotonic_us();
  bool said = false, woken = true;
  NodeSet missing;
  prepare_for_wakeup();
  while (!answered(nullptr, &missing) && !ddl_pool_fenced() && !ddl_postmaster_gone()) {
    woken = sleep_until_wakeup_uninterrupted();
    if (said || monotonic_us() - began < kDdlPatienceUs) continue;
    char nodes[256];
    write_nodes(missing, nodes, sizeof nodes);
    ereport(WARNING, (errmsg("the transaction is committed, and waits for primary %s to do the same", nodes),
                      errhint("gcl_stat_ddl shows who has not answered; the log there says what was asked.")));
    said = true;
  }
  count_if_late(woken);
  done_with_wakeups();
}

static bool an_end_is_pending() {
  uint64_t sequences[engine::kDdlSlotsMax], dealt_with[engine::kDdlSlotsMax];
  ddl_channel().newest_messages(sequences, dealt_with);
  for (int i = 0; i < ddl_channel().slots(); ++i) {
    DdlHeader header;
    if (sequences[i] <= dealt_with[i] || !ddl_slot(i).read(sequences[i], &header)) continue;
    if (engine::ends_locks(header.kind) && header.to.has(NodeId{ddl_node()})) return true;
  }
  return false;
}

void wait_for_ended_ddl_transactions() {
  const int64_t began = monotonic_us();
  prepare_for_wakeup();
  while (an_end_is_pending() && !ddl_pool_fenced() && monotonic_us() - began < kStaleUs)
    sleep_until_wakeup(WaitEvent::kDdlAnswers);
  done_with_wakeups();
}

}  // namespace gcl

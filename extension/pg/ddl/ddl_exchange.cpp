#include "extension/pg/ddl/ddl_exchange.hpp"

#include "extension/pg/ddl/ddl.hpp"
#include "extension/pg/ddl/ddl_news.hpp"
#include "extension/pg/ddl/ddl_plan.hpp"
#include "extension/pg/ddl/ddl_port.hpp"
#include "extension/pg/ddl/ddl_position.hpp"
#include "extension/pg/ddl/shared_relations.hpp"

extern "C" {
#include "commands/dbcommands.h"
#include "libpq/pqformat.h"
#include "pgstat.h"
#include "storage/lock.h"
#include "storage/pmsignal.h"
#include "storage/proc.h"
#include "utils/resowner.h"
#include "utils/timestamp.h"
}

namespace gcl {
namespace {

using coherence::NodeId;
using engine::DdlHeader;
using engine::DdlKind;
using engine::DdlMembers;
using engine::DdlReply;

struct Kept {
  DdlRecord* record;
  bool rolled_back;  // its savepoint was
};

// What this transaction has under way; everything it points to lives in `context`.
struct Exchange {
  bool locked;  // we hold the cluster's DDL lock
  bool tagged;  // and the local tag
  bool prepared;
  bool ended;  // committed by all; the lock is still ours (P23)
  bool saved;  // the position's file
  bool logged_of_cluster;
  uint64_t first;  // number of our first message; 0: none posted
  uint64_t last;
  uint64_t log_number;
  DdlMembers members;
  List* kept;       // Kept*
  List* opened_in;  // savepoints that were open when the exchange began
  List* told;       // and those that the others know of
  List* aborted;    // rolled back, and the others do not know yet
  engine::DdlChannel* channel;
  char database[NAMEDATALEN];
} exchange;

struct DdlLockSeen {
  engine::DdlHolder holder;
  uint64_t since;
};

// A worker that takes longer to let go of the tag has it, to all intents.
constexpr TimestampTz kStaleTagUs = 2'000'000;

MemoryContext exchange_context = nullptr;
List* savepoints = NIL;  // of int, in TopMemoryContext

LOCKTAG ddl_tag() {
  LOCKTAG tag;
  tag.locktag_field1 = 0x67636c;  // "gcl"
  tag.locktag_field2 = 0x64646c;  // "ddl"
  tag.locktag_field3 = 0;
  tag.locktag_field4 = 0;
  tag.locktag_type = LOCKTAG_USERLOCK;
  tag.locktag_lockmethodid = DEFAULT_LOCKMETHOD;
  return tag;
}

[[noreturn]] void raise_fenced() {
  ereport(ERROR, (errcode(ERRCODE_CRASH_SHUTDOWN), errmsg("the gcl pool is fenced: a primary ended uncleanly")));
  pg_unreachable();
}

// The reply's text is SQLSTATE, a line break, the message, and a hint if there is one behind kReplyHint.
[[noreturn]] void raise_reply(NodeId node) {
  char text[engine::kDdlReplyBytes + 1];
  const uint32_t bytes = exchange.channel->reply_text(node, text);
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

// Whether every participant has dealt with `sequence`; the first that failed is put into *failed.
bool settled(uint64_t sequence, NodeId* failed) {
  bool all = true;
  for (coherence::NodeSet left = exchange.members.nodes; !left.empty(); left = left.without(left.first())) {
    const NodeId node = left.first();
    switch (exchange.channel->reply_of(node, exchange.members.incarnation[node.value], sequence)) {
      case DdlReply::kPending:
        all = false;
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

void wait_settled(uint64_t sequence, bool raise_failure) {
  NodeId failed;
  prepare_for_news();
  while (!settled(sequence, raise_failure ? &failed : nullptr) && !failed.valid()) {
    if (ddl_pool_fenced()) raise_fenced();
    ddl_check_verdict();
    sleep_for_news(WaitEvent::kDdlAnswers);
  }
  done_with_news();
  if (failed.valid()) raise_reply(failed);
}

void wait_or_cancel(uint64_t sequence, bool raise_failure) {
  // What was left behind is cancelled already: that wait is short.
  if (raise_failure) ddl_waits_for_replies();
  PG_TRY();
  { wait_settled(sequence, raise_failure); }
  PG_CATCH();
  {
    ddl_waits_no_more();
    exchange.channel->cancel(sequence);  // whoever waits for a lock for us can stop
    ddl_ring_others();
    PG_RE_THROW();
  }
  PG_END_TRY();
  ddl_waits_no_more();
}

uint64_t post(DdlKind kind, const char* part, uint32_t bytes, uint32_t offset, uint32_t total) {
  DdlHeader header{};
  header.exchange = exchange.first;
  header.log_number = exchange.log_number;
  header.bytes = bytes;
  header.total = total;
  header.offset = offset;
  header.kind = kind;
  header.author = ddl_node();
  header.of_cluster = exchange.logged_of_cluster;
  header.posted = GetCurrentTimestamp();
  strlcpy(header.database, exchange.database, sizeof header.database);
  if (exchange.first == 0) {
    header.exchange = exchange.channel->sequence() + 1;
    exchange.first = header.exchange;
    ddl_in_exchange(exchange.first);
  }
  exchange.last = exchange.channel->post(header, part);
  ddl_ring_others();
  return exchange.last;
}

// Posts a message, in parts if it is longer than the window, and waits until all have dealt with it.
void send(DdlKind kind, StringInfo body) {
  if (exchange.last) wait_or_cancel(exchange.last, false);  // D1: one that an ERROR left behind
  const uint32_t total = uint32_t(body->len), window = exchange.channel->window_bytes();
  uint32_t offset = 0;
  do {
    const uint32_t bytes = Min(window, total - offset);
    const uint64_t sequence = post(kind, body->data + offset, bytes, offset, total);
    wait_or_cancel(sequence, true);
    offset += bytes;
  } while (offset < total);
}

void start_body(StringInfo body) {
  initStringInfo(body);
  write_ints(body, savepoints);
  write_ints(body, exchange.aborted);
  MemoryContext caller = MemoryContextSwitchTo(exchange_context);
  exchange.told = list_copy(savepoints);
  MemoryContextSwitchTo(caller);
}

// Gives back whatever this transaction holds.  Never raises.
void close_exchange() {
  if (exchange.locked) {
    if (exchange.last) exchange.channel->acknowledge(exchange.last, true, {});
    exchange.channel->unlock(ddl_me());
    ddl_ring_others();
  }
  if (exchange.tagged) unlock_ddl_tag();
  if (!exchange.channel) return;  // nothing was exchanged: almost every commit
  if (exchange.first) ddl_in_exchange(0);
  exchange = {};
  MemoryContextReset(exchange_context);
}

List* live_records() {
  List* live = NIL;
  ListCell* cell;
  foreach (cell, exchange.kept) {
    const auto* kept = static_cast<Kept*>(lfirst(cell));
    if (!kept->rolled_back) live = lappend(live, kept->record);
  }
  return live;
}

void write_log_record(StringInfo to, const List* records) {
  int shared = 0;
  const char* dropped = "";
  ListCell* cell;
  foreach (cell, records) {
    const auto* record = static_cast<DdlRecord*>(lfirst(cell));
    shared += record->shared;
    if (drops_database(record)) dropped = record->database;
  }
  // P18.  What else is in the transaction ties it to its database.
  exchange.logged_of_cluster = shared == list_length(records);
  initStringInfo(to);
  pq_sendstring(to, exchange.logged_of_cluster ? "" : exchange.database);
  pq_sendstring(to, dropped);
  pq_sendint32(to, ddl_node());
  pq_sendbyte(to, !exchange.logged_of_cluster && !OidIsValid(gcl_access_method()));
  pq_sendbyte(to, shared > 0);
  pq_sendint32(to, uint32_t(list_length(records)));
  foreach (cell, records) write_record(to, static_cast<DdlRecord*>(lfirst(cell)));
}

// The others still hold what was locked in the savepoint.  They hear of it now, and are not waited for.
void tell_of_rollback() {
  if (ddl_pool_fenced()) return;
  prepare_for_news();
  // D1.  What an ERROR left behind was cancelled by it: that ends soon.
  while (!settled(exchange.last, nullptr) && !ddl_pool_fenced() && PostmasterIsAlive()) sleep_for_news_uninterrupted();
  done_with_news();
  StringInfoData body;
  start_body(&body);
  if (uint32_t(body.len) > exchange.channel->window_bytes()) return;  // the next message tells
  (void)post(DdlKind::kSavepoint, body.data, uint32_t(body.len), 0, uint32_t(body.len));
  exchange.aborted = NIL;
}

void roll_back_to(SubTransactionId mine) {
  if (list_member_int(exchange.opened_in, int(mine))) return ddl_aborted();
  MemoryContext caller = MemoryContextSwitchTo(exchange_context);
  exchange.aborted = lappend_int(exchange.aborted, int(mine));
  ListCell* cell;
  foreach (cell, exchange.kept) {
    auto* kept = static_cast<Kept*>(lfirst(cell));
    kept->rolled_back |= list_member_int(kept->record->path, int(mine));
  }
  if (exchange.last && list_member_int(exchange.told, int(mine))) tell_of_rollback();
  MemoryContextSwitchTo(caller);
}

void savepoint_callback(SubXactEvent event, SubTransactionId mine, SubTransactionId, void*) {
  if (event == SUBXACT_EVENT_START_SUB) {
    MemoryContext caller = MemoryContextSwitchTo(TopMemoryContext);
    savepoints = lappend_int(savepoints, int(mine));
    MemoryContextSwitchTo(caller);
    return;
  }
  if (event == SUBXACT_EVENT_PRE_COMMIT_SUB) return;
  if (savepoints == NIL || llast_int(savepoints) != int(mine)) return;
  savepoints = list_delete_last(savepoints);
  if (event == SUBXACT_EVENT_ABORT_SUB && exchange.locked) roll_back_to(mine);
}

// P23.  The other backends know by now what has changed, and the transaction's locks are free.
void release_callback(ResourceReleasePhase phase, bool, bool, void*) {
  if (phase == RESOURCE_RELEASE_AFTER_LOCKS && exchange.ended) close_exchange();
}

}  // namespace

void install_exchange_hooks() {
  RegisterSubXactCallback(savepoint_callback, nullptr);
  RegisterResourceReleaseCallback(release_callback, nullptr);
}

List* savepoint_path() { return list_copy(savepoints); }

engine::DdlHolder ddl_me() { return engine::DdlHolder::make(NodeId{ddl_node()}, ddl_session(), uint32_t(MyProcPid)); }

void lock_ddl_tag() {
  const LOCKTAG tag = ddl_tag();
  (void)LockAcquire(&tag, ExclusiveLock, true, false);
}

void unlock_ddl_tag() {
  const LOCKTAG tag = ddl_tag();
  (void)LockRelease(&tag, ExclusiveLock, true);
}

// How long the sleep for the lock may last: lock_timeout is counted from the beginning.
static long ms_left(TimestampTz began) {
  if (LockTimeout <= 0) return kHeartbeatMs;
  const long left = LockTimeout - long((GetCurrentTimestamp() - began) / 1000);
  if (left <= 0)
    ereport(ERROR, (errcode(ERRCODE_LOCK_NOT_AVAILABLE), errmsg("canceling statement due to lock timeout"),
                    errdetail("Another primary holds the DDL lock.")));
  return Min(left, kHeartbeatMs);
}

// Another primary has the lock, but our apply worker not yet the tag that says so here: then nobody else can tell that
// we wait for it.
static void sleep_for_lock(DdlLockSeen* seen, long ms) {
  uint64_t since;
  const engine::DdlHolder holder = exchange.channel->holder(&since);
  if (!holder.held()) return;
  if (holder == seen->holder && since == seen->since)
    ddl_still_waits();
  else
    ddl_waits_for_lock(holder);
  *seen = {holder, since};
  PG_TRY();
  { sleep_for_news(WaitEvent::kDdlLock, ms); }
  PG_FINALLY();
  { ddl_waits_no_more(); }
  PG_END_TRY();
}

static void lock_cluster() {
  const TimestampTz began = GetCurrentTimestamp();
  DdlLockSeen seen{};
  for (;;) {
    lock_ddl_tag();
    prepare_for_news();
    if (exchange.channel->try_lock(ddl_me(), uint64_t(GetCurrentTimestamp()))) break;
    unlock_ddl_tag();  // so that the apply worker can have it, and we queue behind it
    if (ddl_pool_fenced()) raise_fenced();
    sleep_for_lock(&seen, ms_left(began));
  }
  done_with_news();
}

// Our apply worker may still have the tag of an exchange that is over: it has yet to hear of its end, or to wake up.
// Nobody is waited for who has the lock.
static bool lock_ddl_tag_now() {
  const LOCKTAG tag = ddl_tag();
  const TimestampTz began = GetCurrentTimestamp();
  bool tagged;
  for (;;) {
    prepare_for_news();
    tagged = LockAcquire(&tag, ExclusiveLock, true, true) != LOCKACQUIRE_NOT_AVAIL;
    uint64_t since;
    if (tagged || exchange.channel->holder(&since).held() || ddl_pool_fenced()) break;
    if (GetCurrentTimestamp() - began > kStaleTagUs) break;
    sleep_for_news(WaitEvent::kDdlLock);
  }
  done_with_news();
  return tagged;
}

static void lock_cluster_now() {
  const bool tagged = lock_ddl_tag_now();
  if (tagged && exchange.channel->try_lock(ddl_me(), uint64_t(GetCurrentTimestamp()))) return;
  if (tagged) unlock_ddl_tag();
  ereport(ERROR, (errcode(ERRCODE_LOCK_NOT_AVAILABLE), errmsg("could not obtain the DDL lock"),
                  errdetail("A lock on all primaries needs it, and another session has it."),
                  errhint("gcl_ddl_lock shows which.")));
}

// The other primaries serve it in one database.
static void join_exchange(bool of_cluster) {
  if (exchange.database[0] != '\0' || of_cluster) return;
  ereport(ERROR,
          (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
           errmsg("this transaction has changed roles or databases before the extension gcl was in the database"),
           errhint("COMMIT before.")));
}

void open_exchange(bool nowait, bool of_cluster) {
  if (exchange.locked) return join_exchange(of_cluster);
  if (!exchange_context)
    exchange_context = AllocSetContextCreate(TopMemoryContext, "gcl ddl exchange", ALLOCSET_DEFAULT_SIZES);
  exchange.channel = &ddl_channel();
  const bool by_name = !of_cluster || OidIsValid(gcl_access_method());
  strlcpy(exchange.database, by_name ? get_database_name(MyDatabaseId) : "", NAMEDATALEN);
  if (nowait)
    lock_cluster_now();
  else
    lock_cluster();
  exchange.locked = exchange.tagged = true;
  MemoryContext caller = MemoryContextSwitchTo(exchange_context);
  exchange.opened_in = list_copy(savepoints);
  MemoryContextSwitchTo(caller);
  exchange.members = exchange.channel->members();
  wait_settled(exchange.channel->sequence(), false);  // D3
}

void send_locks(List* targets, bool nowait) {
  StringInfoData body;
  start_body(&body);
  pq_sendint32(&body, nowait ? uint32_t(-1) : uint32_t(LockTimeout));
  DdlRecord record{};
  record.sql = pstrdup("");
  record.targets = targets;
  write_record(&body, &record);
  send(DdlKind::kLock, &body);
}

// A reply that is no failure says what the statement has dropped along that was that primary's own.
static void tell_local_drops() {
  for (coherence::NodeSet left = exchange.members.nodes; !left.empty(); left = left.without(left.first())) {
    const NodeId node = left.first();
    const uint64_t incarnation = exchange.members.incarnation[node.value];
    if (exchange.channel->reply_of(node, incarnation, exchange.last) != DdlReply::kDone) continue;
    char text[engine::kDdlReplyBytes + 1];
    text[exchange.channel->reply_text(node, text)] = 0;
    if (*text != '\0')
      ereport(NOTICE, (errmsg("primary %d: drop cascades to what is this primary's own: %s", node.value, text)));
  }
}

void send_statement(DdlRecord* record) {
  StringInfoData body;
  start_body(&body);
  const int at = body.len;
  write_record(&body, record);
  send(DdlKind::kStatement, &body);
  tell_local_drops();

  MemoryContext caller = MemoryContextSwitchTo(exchange_context);
  auto* kept = static_cast<Kept*>(palloc0(sizeof(Kept)));
  body.cursor = at;
  kept->record = read_record(&body);
  exchange.kept = lappend(exchange.kept, kept);
  MemoryContextSwitchTo(caller);
}

DdlLogHead read_log_head(StringInfo from) {
  DdlLogHead head;
  head.database = pstrdup(pq_getmsgrawstring(from));
  head.dropped = pstrdup(pq_getmsgrawstring(from));
  head.author = int(pq_getmsgint(from, 4));
  head.ends = pq_getmsgbyte(from) != 0;
  head.shared = pq_getmsgbyte(from) != 0;
  head.records = int(pq_getmsgint(from, 4));
  return head;
}

bool ddl_under_way() noexcept { return exchange.locked; }

void ddl_pre_commit() {
  if (!exchange.locked || exchange.prepared) return;
  const List* records = live_records();
  if (records == NIL) {
    if (exchange.first) send_locks(NIL);  // only to hear that all still have what they have locked
    return;
  }
  const uint64_t transaction = ddl_transaction();
  StringInfoData record;
  write_log_record(&record, records);
  exchange.log_number = ddl_log_append(record.data, uint32_t(record.len), transaction);
  StringInfoData body;
  start_body(&body);
  send(DdlKind::kPrepare, &body);
  exchange.prepared = true;
  DdlPosition position = load_position(MyDatabaseId);
  if (position.extension == OidIsValid(gcl_access_method())) return;
  position.extension = !position.extension;
  save_position(MyDatabaseId, position);
  exchange.saved = true;
}

void ddl_committed() noexcept {
  if (exchange.saved) settle_position(MyDatabaseId);
  if (exchange.locked && exchange.first) {
    const uint64_t sequence = post(exchange.prepared ? DdlKind::kCommit : DdlKind::kAbort, nullptr, 0, 0, 0);
    prepare_for_news();
    while (exchange.prepared && !settled(sequence, nullptr) && !ddl_pool_fenced() && PostmasterIsAlive())
      sleep_for_news_uninterrupted();
    done_with_news();
  }
  exchange.ended = exchange.channel != nullptr;
}

void ddl_aborted() noexcept {
  if (exchange.locked && exchange.first && !ddl_pool_fenced()) {
    exchange.channel->cancel(exchange.last);  // post() rings
    (void)post(DdlKind::kAbort, nullptr, 0, 0, 0);
  }
  close_exchange();
}

}  // namespace gcl

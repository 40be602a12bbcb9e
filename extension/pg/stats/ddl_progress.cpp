// DDL that is under way, on whichever primary: what it asks of the others, and who has not answered yet.  All of it
// stands in the channel (engine/ddl), so every primary shows the same.
#include "extension/pg/backend.hpp"
#include "extension/pg/ddl/ddl_port.hpp"
#include "extension/pg/ddl/ddl_record.hpp"
#include "extension/pg/stats/rows.hpp"

extern "C" {
#include "catalog/pg_authid.h"
#include "commands/dbcommands.h"
#include "storage/lock.h"
#include "utils/acl.h"
#include "utils/lsyscache.h"
PG_FUNCTION_INFO_V1(gcl_stat_ddl_get);
}

namespace gcl {

using engine::DdlKind;
using engine::DdlReply;

namespace {

const char* kind_name(DdlKind kind) {
  switch (kind) {
    case DdlKind::kNone:
      return "nothing yet";
    case DdlKind::kLock:
      return "lock";
    case DdlKind::kStatement:
      return "statement";
    case DdlKind::kPrepare:
      return "prepare";
    case DdlKind::kCommit:
      return "commit";
    case DdlKind::kSavepoint:
      return "rollback of a savepoint";
    case DdlKind::kAbort:
      return "rollback";
  }
  return "?";
}

const char* reply_name(DdlReply reply) {
  switch (reply) {
    case DdlReply::kPending:
      return "awaited";
    case DdlReply::kDone:
      return "done";
    case DdlReply::kFailed:
      return "failed";
    case DdlReply::kGone:
      return "left";
  }
  return "?";
}

// "AccessExclusiveLock on t, ShareLock on u"
char* locks_text(const List* targets, bool same_database) {
  StringInfoData text;
  initStringInfo(&text);
  ListCell* cell;
  foreach (cell, targets) {
    const auto* target = static_cast<DdlTarget*>(lfirst(cell));
    const char* name = same_database ? get_rel_name(target->relation) : nullptr;
    appendStringInfo(&text, "%s%s on ", text.len > 0 ? ", " : "",
                     GetLockmodeName(DEFAULT_LOCKMETHOD, LOCKMODE(target->mode)));
    if (name != nullptr)
      appendStringInfoString(&text, quote_identifier(name));
    else
      appendStringInfo(&text, "relation %u", target->relation);
  }
  return text.data;
}

// The statement, or the locks; null: the message is about neither, or is longer than one part.
char* body_text(const engine::DdlMessage& message) {
  const engine::DdlHeader& header = message.header;
  const bool lock = header.kind == DdlKind::kLock;
  if ((!lock && header.kind != DdlKind::kStatement) || header.bytes != header.total) return nullptr;
  StringInfoData body;
  initStringInfo(&body);
  enlargeStringInfo(&body, int(header.bytes));
  if (!ddl_channel().read_body(message, body.data)) return nullptr;  // it has gone on meanwhile
  body.len = int(header.bytes);
  (void)read_ints(&body);
  (void)read_ints(&body);
  if (lock) body.cursor += 4;
  const DdlRecord* record = read_record(&body);
  if (!lock) return record->sql;
  return locks_text(record->targets, strcmp(header.database, get_database_name(MyDatabaseId)) == 0);
}

// The newest message, if it is of the transaction that has the lock since `since`.
bool message_of(engine::DdlHolder holder, TimestampTz since, engine::DdlMessage* message) {
  for (int i = 0; i < 10; ++i) {
    message->sequence = ddl_channel().sequence();
    if (message->sequence == 0) return false;
    if (!ddl_channel().read(message->sequence, &message->header)) continue;
    return message->header.author == holder.node().value && message->header.posted >= since;
  }
  return false;
}

}  // namespace
}  // namespace gcl

using namespace gcl;  // NOLINT: the functions below are PostgreSQL's, in the global namespace

// While somebody has the DDL lock: a row for each primary whose answer its transaction needs, or a single one.
Datum gcl_stat_ddl_get(PG_FUNCTION_ARGS) {
  (void)pool();
  ReturnSetInfo* const result = rows_of(fcinfo);
  uint64_t since;
  const engine::DdlHolder holder = ddl_channel().holder(&since);
  if (!holder.held()) return Datum{0};
  engine::DdlMessage message;
  const bool asked = message_of(holder, TimestampTz(since), &message);
  const bool may_read = has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS);
  const char* text = !asked ? nullptr : may_read ? body_text(message) : "<insufficient privilege>";
  auto begin = [&](Row<11>* row) {
    row->integer(holder.node().value).integer(holder.pid()).time(TimestampTz(since));
    row->text(asked ? message.header.database : nullptr);
    row->text(kind_name(asked ? message.header.kind : DdlKind::kNone)).text(text);
    row->time(asked ? message.header.posted : 0);
  };
  int rows = 0;
  for (uint32_t n = 0; asked && n < node_pool()->nodes_max(); ++n) {
    const coherence::NodeId node{uint8_t(n)};
    const uint64_t incarnation = ddl_channel().membership(node);
    if (incarnation == 0 || node == holder.node()) continue;
    const DdlReply reply = ddl_channel().reply_of(node, incarnation, message.sequence);
    char why[engine::kDdlReplyBytes + 1];
    why[reply == DdlReply::kFailed && may_read ? ddl_channel().reply_text(node, why) : 0] = '\0';
    Row<11> row;
    begin(&row);
    row.integer(int(n)).text(reply_name(reply));
    row.truth(reply == DdlReply::kPending).text(why[0] == '\0' ? nullptr : why);
    row.put(result);
    ++rows;
  }
  if (rows == 0) {
    Row<11> row;
    begin(&row);
    row.null(4).put(result);
  }
  return Datum{0};
}

// DDL that is under way, on any primary: what it asks of the others, and which have not answered yet.  All of it stands
// in the channel (engine/ddl), so every primary shows the same.
#include "extension/pg/ddl/record/ddl_describe.hpp"
#include "extension/pg/runtime/backend.hpp"
#include "extension/pg/runtime/rows.hpp"

extern "C" {
#include "catalog/pg_authid.h"
#include "utils/acl.h"
PG_FUNCTION_INFO_V1(gcl_stat_ddl_get);
}

namespace gcl {

using engine::DdlKind;
using engine::DdlReply;

namespace {

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

// The newest message, if it is of the transaction that has the slot since `since`.
bool message_of(engine::DdlSlot slot, engine::DdlHolder owner, TimestampTz since, engine::DdlMessage* message) {
  for (int i = 0; i < 10; ++i) {
    message->sequence = slot.sequence();
    if (message->sequence == 0) return false;
    if (!slot.read(message->sequence, &message->header)) continue;
    if (owner.is_heir()) return true;
    return message->header.coordinator == owner.node().value && message->header.posted >= since;
  }
  return false;
}

// Only its primary knows what became of it, and has died (ddl_log.undecided-stays).
bool in_doubt(engine::DdlSlot slot, engine::DdlHolder owner) {
  const uint64_t txn = slot.txn();
  return txn != 0 && !owner.is_heir() && ddl_channel().membership(owner.node()) == 0 &&
         ddl_outcome(txn) == DdlOutcome::kUndecided;
}

// A row for each primary whose answer the transaction needs, or a single one.
void show(engine::DdlSlot slot, ReturnSetInfo* result) {
  uint64_t since;
  const engine::DdlHolder owner = slot.owner(&since);
  if (!owner.held()) return;
  engine::DdlMessage message;
  const bool asked = message_of(slot, owner, TimestampTz(since), &message);
  const bool may_read = has_privs_of_role(GetUserId(), ROLE_PG_READ_ALL_STATS);
  const char* text = !asked ? nullptr : may_read ? ddl_text_of(slot, message) : "<insufficient privilege>";
  const engine::DdlHolder coordinator = owner.is_heir() ? message.header.holder : owner;
  const char* phase = ddl_kind_name(asked ? message.header.kind : DdlKind::kNone);
  if (asked && in_doubt(slot, owner)) phase = "in doubt";
  auto begin = [&](Row<11>* row) {
    row->integer(coordinator.node().value).integer(coordinator.pid()).time(TimestampTz(since));
    row->text(asked ? message.header.database : nullptr);
    row->text(phase).text(text);
    row->time(asked ? message.header.posted : 0);
  };
  int rows = 0;
  for (uint32_t n = 0; asked && n < node_pool()->nodes_max(); ++n) {
    const coherence::NodeId node{uint8_t(n)};
    const uint64_t incarnation = ddl_channel().membership(node);
    if (incarnation == 0 || !message.header.to.has(node)) continue;
    const DdlReply reply = slot.reply_of(node, incarnation, message.sequence);
    char why[engine::kDdlReplyBytes + 1];
    why[reply == DdlReply::kFailed && may_read ? slot.reply_text(node, why) : 0] = '\0';
    Row<11> row;
    begin(&row);
    row.integer(int(n)).text(reply_name(reply));
    row.truth(reply == DdlReply::kPending).text(why[0] == '\0' ? nullptr : why);
    row.put(result);
    ++rows;
  }
  if (rows > 0) return;
  Row<11> row;
  begin(&row);
  row.null(4).put(result);
}

}  // namespace
}  // namespace gcl

using namespace gcl;  // NOLINT: the functions below are PostgreSQL's, in the global namespace

Datum gcl_stat_ddl_get(PG_FUNCTION_ARGS) {
  (void)pool();
  ReturnSetInfo* const result = rows_of(fcinfo);
  for (int slot = 0; slot < ddl_channel().slots(); ++slot) show(ddl_slot(slot), result);
  return Datum{0};
}

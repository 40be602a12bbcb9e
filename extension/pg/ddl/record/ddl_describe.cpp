#include "extension/pg/ddl/record/ddl_describe.hpp"

extern "C" {
#include "commands/dbcommands.h"
#include "storage/lock.h"
#include "utils/lsyscache.h"
}

namespace gcl {

using engine::DdlKind;

static bool is_this_database(const char* name) {
  return OidIsValid(MyDatabaseId) && strcmp(name, get_database_name(MyDatabaseId)) == 0;
}

const char* ddl_kind_name(DdlKind kind) {
  switch (kind) {
    case DdlKind::kNone:
      return "nothing yet";
    case DdlKind::kLock:
      return "lock";
    case DdlKind::kStatement:
      return "statement";
    case DdlKind::kLast:
      return "statement and prepare";
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

char* ddl_locks_text(const List* targets, const char* database) {
  const bool same_database = is_this_database(database);
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

char* ddl_text_of(engine::DdlSlot slot, const engine::DdlMessage& message) {
  const engine::DdlHeader& header = message.header;
  const bool lock = header.kind == DdlKind::kLock;
  const bool statement = header.kind == DdlKind::kStatement || header.kind == DdlKind::kLast;
  if ((!lock && !statement) || header.bytes != header.total) return nullptr;
  StringInfoData body;
  initStringInfo(&body);
  enlargeStringInfo(&body, int(header.bytes));
  if (!slot.read_body(message, body.data)) return nullptr;  // it has gone on meanwhile
  body.len = int(header.bytes);
  (void)read_ints(&body);
  (void)read_ints(&body);
  if (lock) body.cursor += 8;  // its timeouts
  const DdlRecord* record = read_record(&body);
  if (!lock) return record->sql;
  return ddl_locks_text(record->targets, header.database);
}

}  // namespace gcl

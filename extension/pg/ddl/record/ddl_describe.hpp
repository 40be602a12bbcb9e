// A message of the channel in words: for views and for the server's log.
#pragma once

#include "extension/pg/ddl/base/ddl_port.hpp"
#include "extension/pg/ddl/record/ddl_record.hpp"

namespace gcl {

const char* ddl_kind_name(engine::DdlKind kind);
// "AccessExclusiveLock on t, ShareLock on u"; relations by number if they are of another database.
char* ddl_locks_text(const List* targets, const char* database);
// The statement, or the locks; null: the message is about neither, or is longer than one part, or there is a newer one.
char* ddl_text_of(engine::DdlSlot slot, const engine::DdlMessage& message);

}  // namespace gcl

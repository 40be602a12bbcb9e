// Triggers of TRUNCATE that are ENABLE ALWAYS or ENABLE REPLICA would fire in a replay too (ddl.no-user-code).
#pragma once

#include "extension/pg/ddl/base/pg.hpp"

namespace gcl {

// Disables such triggers on the targets (DdlTarget*).  SilentTrigger*: to be given back.
List* silence_triggers(const List* targets);
void let_triggers_speak(const List* silent);

}  // namespace gcl

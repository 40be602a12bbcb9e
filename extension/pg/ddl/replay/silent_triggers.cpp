#include "extension/pg/ddl/replay/silent_triggers.hpp"

#include "extension/pg/ddl/record/ddl_record.hpp"

extern "C" {
#include "access/relation.h"
#include "catalog/pg_trigger.h"
#include "commands/trigger.h"
#include "utils/rel.h"
}

namespace gcl {
namespace {

struct SilentTrigger {
  Oid table;
  char* name;
  char fires_when;
};

void set_firing(Oid table, const char* trigger, char fires_when) {
  Relation relation = relation_open(table, NoLock);
  EnableDisableTriggerNew2(relation, trigger, InvalidOid, fires_when, false, false, AccessExclusiveLock);
  relation_close(relation, NoLock);
  CommandCounterIncrement();
}

List* with_triggers_of(List* triggers, Oid table) {
  Relation relation = try_relation_open(table, NoLock);
  if (!relation) return triggers;
  const TriggerDesc* all = relation->trigdesc;
  for (int i = 0; all && i < all->numtriggers; ++i) {
    const Trigger& trigger = all->triggers[i];
    const bool fires = trigger.tgenabled == TRIGGER_FIRES_ALWAYS || trigger.tgenabled == TRIGGER_FIRES_ON_REPLICA;
    if (!fires || !TRIGGER_FOR_TRUNCATE(trigger.tgtype)) continue;
    auto* silent = static_cast<SilentTrigger*>(palloc(sizeof(SilentTrigger)));
    *silent = {table, pstrdup(trigger.tgname), trigger.tgenabled};
    triggers = lappend(triggers, silent);
  }
  relation_close(relation, NoLock);
  return triggers;
}

}  // namespace

List* silence_triggers(const List* targets) {
  List* silent = NIL;
  ListCell* cell;
  foreach (cell, targets) silent = with_triggers_of(silent, static_cast<DdlTarget*>(lfirst(cell))->relation);
  foreach (cell, silent) {
    const auto* trigger = static_cast<SilentTrigger*>(lfirst(cell));
    set_firing(trigger->table, trigger->name, TRIGGER_DISABLED);
  }
  return silent;
}

void let_triggers_speak(const List* silent) {
  ListCell* cell;
  foreach (cell, silent) {
    const auto* trigger = static_cast<SilentTrigger*>(lfirst(cell));
    set_firing(trigger->table, trigger->name, trigger->fires_when);
  }
}

}  // namespace gcl

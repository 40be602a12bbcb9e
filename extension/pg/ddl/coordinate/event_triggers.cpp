#include "extension/pg/ddl/coordinate/event_triggers.hpp"

#include "extension/pg/ddl/record/captures.hpp"

extern "C" {
#include "catalog/pg_type.h"
#include "commands/event_trigger.h"
#include "utils/lsyscache.h"
}

namespace gcl {
namespace {

needs_fmgr_hook_type needs_hook_before = nullptr;
fmgr_hook_type fmgr_hook_before = nullptr;
PGFunction entered = nullptr;  // what call_trigger() stands for next

// Null: not of a captured statement, or of one that has been told already what the event means.
Capture* capture_at(const EventTriggerData* trigger) {
  Capture* capture = working_capture();
  return capture && capture->statement == trigger->parsetree ? capture : nullptr;
}

void begin_event(Capture* capture, const char* event) {
  if (strcmp(event, "ddl_command_start") == 0) {
    capture->pause();
    capture->stage = CaptureStage::kStarts;
  } else if (strcmp(event, "table_rewrite") == 0) {
    capture->stage = CaptureStage::kRewrites;
  } else {  // sql_drop, ddl_command_end
    capture->finish();
  }
}

// After an ERROR the statement fails as a whole.
void end_event(Capture* capture) {
  const bool starts = capture->stage == CaptureStage::kStarts;
  if (capture->stage != CaptureStage::kDone) capture->stage = CaptureStage::kWorks;
  if (starts) capture->resume();
}

Datum call_trigger(PG_FUNCTION_ARGS) {
  const PGFunction function = entered;
  const auto* trigger = reinterpret_cast<const EventTriggerData*>(fcinfo->context);
  Capture* capture = CALLED_AS_EVENT_TRIGGER(fcinfo) ? capture_at(trigger) : nullptr;
  if (capture) begin_event(capture, trigger->event);
  const Datum result = function(fcinfo);
  if (capture) end_event(capture);
  return result;
}

bool needs_call(Oid function) {
  if (capturing() && get_func_rettype(function) == EVENT_TRIGGEROID) return true;
  return needs_hook_before != nullptr && needs_hook_before(function);
}

// The server looks the function up anew for each call.
void enter(FmgrHookEventType event, FmgrInfo* function, Datum* arg) {
  if (fmgr_hook_before) fmgr_hook_before(event, function, arg);
  if (event != FHET_START || !capturing() || get_func_rettype(function->fn_oid) != EVENT_TRIGGEROID) return;
  entered = function->fn_addr;
  function->fn_addr = call_trigger;
}

}  // namespace

void install_event_triggers() {
  needs_hook_before = needs_fmgr_hook;
  fmgr_hook_before = fmgr_hook;
  needs_fmgr_hook = needs_call;
  fmgr_hook = enter;
}

}  // namespace gcl

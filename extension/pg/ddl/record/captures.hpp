// The statements of this session that are being captured: one, and above it those that its event triggers run
// (ddl.event-triggers-apart).
#pragma once

#include "extension/pg/ddl/record/ddl_record.hpp"

namespace gcl {

enum class CaptureStage : uint8_t {
  kWorks,     // what is made and altered is its doing
  kStarts,    // its triggers on ddl_command_start run: it has done nothing yet
  kRewrites,  // a trigger on table_rewrite runs: it is half done
  kDone       // the others have its record; its triggers on sql_drop and ddl_command_end may run
};

// On the stack of the function that runs the statement.
class Capture {
 public:
  const Node* statement;
  DdlRecord* record;
  MemoryContext context;  // lives as long as the statement
  const Oid first_oid;    // the server's next one when it began
  CaptureStage stage = CaptureStage::kWorks;
  bool disturbed = false;    // its triggers have done DDL on every primary
  List* made = nullptr;      // DdlMade*, in order
  List* altered = nullptr;   // DdlObject*
  List* pages = nullptr;     // DdlPages*
  Capture* below = nullptr;  // whose event trigger runs it

  virtual void pause() = 0;   // its triggers on ddl_command_start are next; undoes what was done for it
  virtual void resume() = 0;  // they have run
  virtual void finish() = 0;  // its work is done: the others get its record

 protected:
  Capture(const Node* its_statement, DdlRecord* its_record);
  ~Capture() = default;
};

void begin_capture(Capture* capture);
void leave_capture(Capture* capture);  // it has ended, or failed

Capture* newest_capture();   // null: none
Capture* working_capture();  // the newest if it works; null: none does
inline bool capturing() { return working_capture() != nullptr; }

}  // namespace gcl

#include "extension/pg/ddl/record/captures.hpp"

#include "extension/pg/ddl/record/own_oids.hpp"

namespace gcl {
namespace {

Capture* newest = nullptr;

}  // namespace

Capture::Capture(const Node* its_statement, DdlRecord* its_record)
    : statement(its_statement), record(its_record), context(CurrentMemoryContext), first_oid(next_oid_of_server()) {}

void begin_capture(Capture* capture) {
  if (newest) newest->disturbed = true;
  capture->below = newest;
  newest = capture;
}

void leave_capture(Capture* capture) { newest = capture->below; }

Capture* newest_capture() { return newest; }

Capture* working_capture() { return newest && newest->stage == CaptureStage::kWorks ? newest : nullptr; }

}  // namespace gcl

// One call of the ProcessUtility hook, and what is done with it on this primary alone.
#pragma once

#include "extension/pg/boundary/pg.hpp"
#include "extension/pg/ddl/record/ddl_record.hpp"

extern "C" {
#include "nodes/plannodes.h"
#include "tcop/utility.h"
}

namespace gcl {

struct UtilityCall {
  PlannedStmt* statement;
  const char* text;
  bool read_only_tree;
  ProcessUtilityContext context;
  ParamListInfo params;
  QueryEnvironment* environment;
  DestReceiver* destination;
  QueryCompletion* completion;
};

// To the end of the chain (ddl.hooks-run-once): behind this hook is the server alone.
void pass_on(const UtilityCall&);

// Its own text, of all that the client has sent.
char* text_of(const UtilityCall&);

// What is told to the others of it, as far as it is known before it runs.
DdlRecord* start_record(const UtilityCall&);

bool drops_an_extension(const Node* statement);

// (ddl.shared-without-local-ties)
[[noreturn]] void refuse_replacement(const char* why, const char* hint = "Drop it, and create it anew.");

}  // namespace gcl

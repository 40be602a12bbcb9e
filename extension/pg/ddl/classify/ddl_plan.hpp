// What is to become of one statement: decided by ddl_scope and its parts, carried out by ddl_transaction.
#pragma once

#include "extension/pg/ddl/record/ddl_record.hpp"

namespace gcl {

enum class DdlScope : uint8_t {
  kLocal,
  kCluster,
  kUnknown,  // a name stands for what has just gone: to be asked again under the DDL lock (ddl.names-decide-unlocked)
};

struct DdlPlan {
  DdlScope scope;
  List* targets;              // DdlTarget*: what other primaries must lock before the statement runs here
  bool changes_columns;       // of the first target: adds some, or gives them other types
  List* sequences = nullptr;  // OIDs, of the targets: whose definition or value it changes
  bool leaves = false;        // the sequence becomes this primary's own: the others drop it
  bool partitioned = false;   // the partitioned tables it makes are every primary's
  bool shared = false;        // about roles or databases, which belong to no database
  DdlDatabase to_database = DdlDatabase::kNothing;
  const char* database = nullptr;  // which; null: none
  bool owned = false;              // about all that a role has, local objects included
  bool was_shared = false;         // it alters, replaces or drops what all primaries have
};

void note_plan(DdlRecord* record, const DdlPlan& plan);

inline DdlPlan local() { return {DdlScope::kLocal, NIL, false}; }
inline DdlPlan everywhere() { return {DdlScope::kCluster, NIL, false}; }
DdlPlan everywhere_on(Oid relation, LOCKMODE mode);
DdlPlan on_shared(DdlPlan plan);  // with was_shared
// No plan: raises feature_not_supported.
[[noreturn]] void refuse_ddl(const char* what, const char* hint = nullptr);

// List of DdlTarget*.
List* with_target(List* targets, Oid relation, LOCKMODE mode);
bool is_target(const DdlPlan* plan, Oid relation);
void add_target(DdlPlan* plan, Oid relation, LOCKMODE mode);

}  // namespace gcl

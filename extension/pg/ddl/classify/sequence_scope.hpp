// Statements on sequences, and the sequences that statements on tables touch.
//
// A sequence is every primary's unless it is temporary, unlogged, or owned by a column of a local table: those of
// serial and identity columns of gcl tables, and what CREATE SEQUENCE makes.  One that gets such an owner later, as
// pg_dump writes it, leaves: it becomes its primary's own, and the others drop it.
#pragma once

#include "extension/pg/ddl/classify/ddl_plan.hpp"

namespace gcl {

DdlPlan plan_create_sequence(const CreateSeqStmt* statement);
DdlPlan plan_alter_sequence(const AlterSeqStmt* statement);

// To plan->sequences: those of identity columns whose definition the ALTER TABLE changes.
void add_altered_identity_columns(DdlPlan* plan, const AlterTableStmt* statement);
// The sequences of columns of the plan's targets; `restart`: the statement sets them back.
void add_owned_sequences(DdlPlan* plan, bool restart);

// The statement that the other primaries run when a sequence becomes local.
char* statement_to_drop(Oid sequence);

// Before a statement runs, and with its record before its replay: the server's code finds the sequences in files of its
// own.  DdlSequence*: their values then.
List* hand_to_server(const List* sequences);
void hand_to_server_again(const List* sequences);
// After it.  Sequences that it made or was handed become every primary's, on new pages of the pool.
void take_from_server(const DdlRecord* record);
void take_from_server_again(const DdlRelationState* state);

}  // namespace gcl

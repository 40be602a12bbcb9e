// Identity columns.  The server's parser gives them NextValueExpr, which goes straight to the server's own sequences;
// the planner hook puts a call of nextval() in its place.
//
// pg_sequence.planner-sees-all: Every statement with targets comes through the planner, those of PL/pgSQL, of SQL
//     functions and of rules included.  What evaluates a column's default without planning it is COPY
//     (copy_identity_columns.hpp) and ALTER TABLE ... ADD COLUMN, whose sequence is the server's until the statement
//     has ended.
// pg_sequence.call-without-privilege: The call needs no privilege on the sequence, as NextValueExpr does not.  It is
//     known by its location, which the parser gives to nothing a user can write.
#pragma once

#include "extension/pg/boundary/pg.hpp"

extern "C" {
#include "nodes/primnodes.h"
}

namespace gcl {

void install_identity_column_hook();

// (pg_sequence.call-without-privilege)
bool is_identity_call(FunctionCallInfo call);

// What takes the place of `next`; `next` itself if its sequence is the server's.
Expr* identity_call(NextValueExpr* next);

}  // namespace gcl

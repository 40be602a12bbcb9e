// Statements on what is neither a table nor an index: schemas, types, functions, and all else of a database.
//
// ddl.made-objects-judged-after: The objects that a statement makes or alters are examined when it has run
//     (end_capture): if one depends on a local table, the statement stays here, or is refused if it alters what all
//     primaries have.
// ddl.named-objects-judged-before: The objects that a statement drops, renames, comments on or grants are looked up
//     before it runs, by their names.
#pragma once

#include "extension/pg/ddl/classify/statement_kind.hpp"

namespace gcl {

std::span<const StatementKind> object_kinds();
// A view or a function.
bool replaces(const Node* statement);
// Of the object, or the objects, that these names stand for.  May raise.
DdlPlan plan_for(ObjectType type, Node* name);
DdlPlan plan_for_all(ObjectType type, const List* names);

}  // namespace gcl

// The objects that a record names.
#pragma once

#include "extension/pg/ddl/record/ddl_record.hpp"

namespace gcl {

List* made_of_kind(const List* made, DdlMadeKind kind);  // OIDs
List* relations_made(const List* made);                  // OIDs: tables and the like, indexes, TOAST relations

List* relations_of(const DdlRecord* record);  // OIDs: made, and locked for it
List* objects_of(const DdlRecord* record);    // DdlObject*: that the digest can ask for
List* touched_by(const DdlRecord* record);    // DdlObject*: everything that was made or altered
List* enums_of(const DdlRecord* record);      // OIDs: made, or altered

}  // namespace gcl

// What an object is and does, as text without OIDs: equal on all primaries if it means the same on them
// (ddl.digest-compares-meanings).
#pragma once

#include "extension/pg/ddl/record/ddl_record.hpp"

namespace gcl {

char* name_of(const DdlObject& object);     // with its schema and the types of its arguments; null: it is not there
char* meaning_of(const DdlObject& object);  // null: its name says all, or what it is a part of
char* labels_with_oids(Oid type);           // of an enum: rows hold the OIDs; null: it is none

}  // namespace gcl

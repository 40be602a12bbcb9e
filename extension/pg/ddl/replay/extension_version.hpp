// CREATE and ALTER EXTENSION gcl as other primaries are told of them: with the version that the coordinator came to.
//
// ddl.library-never-older: The extension's objects in a database are never newer than the library of a primary that has
//     them.  The coordinator names its version to the others, whose own default may be another one while a cluster is
//     upgraded; each refuses a version that is newer than its library (55000), and so the statement fails everywhere.
//     A primary that was away, and comes back with an older library, keeps the database out
//     (ddl.member-has-applied-log) until it has the newer one.
#pragma once

#include "extension/pg/ddl/record/ddl_record.hpp"

namespace gcl {

// On the coordinator, when the statement has run here.
void name_version(const Node* statement, DdlRecord* record);
// On a participant, before the statement runs.
void require_library_for(const Node* statement);

}  // namespace gcl

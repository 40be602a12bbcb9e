// CREATE and ALTER ROLE as other primaries are told of them: with the password's stored verifier beside the text, never
// with what the user wrote (ddl.no-clear-passwords).
#pragma once

#include "extension/pg/ddl/record/ddl_record.hpp"

namespace gcl {

// On the coordinator, when it has run here.
void hide_password(const Node* statement, DdlRecord* record);
// Into the statement that was read from `record`.
void put_password(Node* statement, const DdlRecord* record);

}  // namespace gcl

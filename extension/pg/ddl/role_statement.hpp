// CREATE and ALTER ROLE as other primaries are told of them: with the password's stored verifier, never with what the
// user wrote.
#pragma once

#include "extension/pg/ddl/pg.hpp"

namespace gcl {

// The statement anew, when it has run here; null if it says nothing of a password, so that its own text will do.
char* text_with_verifier(const Node* statement);

}  // namespace gcl

// No code of a user runs in an apply worker (ddl.no-user-code): neither functions nor checks of domains.
#pragma once

namespace gcl {

// REQUIRES: called while shared_preload_libraries are processed.
void install_no_user_code();

// From now on, in this process.
void run_no_user_code();
// Whether SQL functions, too, are called, to return null, and not put into an expression in place of their call: where
// nothing depends on whether the expression is immutable, and the server may evaluate it.
void inline_no_user_code(bool on);

}  // namespace gcl

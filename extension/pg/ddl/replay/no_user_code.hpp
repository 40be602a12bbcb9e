// No code of a user runs in an apply worker (ddl.no-user-code): neither functions nor checks of domains.
#pragma once

namespace gcl {

// REQUIRES: called while shared_preload_libraries are processed.
void install_no_user_code();

// From now on, in this process.
void run_no_user_code();

}  // namespace gcl

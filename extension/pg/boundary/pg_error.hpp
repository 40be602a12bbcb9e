// PgError: PostgreSQL's ERROR, caught whole, while it travels through C++ frames as an exception, or waits in the
// backend until the engine has returned (carry_error).  Law (c): it is never dropped, and leaves as it came.
#pragma once

#include "extension/pg/boundary/pg.hpp"

namespace gcl {

// Trivially copyable: the data lives in a memory context of the backend (TopMemoryContext until re-thrown).
struct PgError {
  ErrorData* data;
};

// Re-throws the error to PostgreSQL.  REQUIRES: no C++ frame between here and the callback's entry owns anything.
[[noreturn]] void rethrow(PgError error);

// An error caught below the engine (in a wait) that has to pass it: kept until take_carried_error().
void carry_error(PgError error) noexcept;
// Re-throws what was carried, if anything; returns if nothing was.
void raise_carried_error();
// Drops what was carried: for transaction ends, where no caller can take it any more.
void forget_carried_error() noexcept;

}  // namespace gcl

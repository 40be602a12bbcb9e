#include "extension/pg/boundary/pg_call.hpp"

namespace gcl {

namespace {
PgError carried{nullptr};
ErrorData* spent = nullptr;  // thrown on; freed when the next one is caught
}  // namespace

// Owns nothing, and nothing below it is a C++ frame that does (see the contract): the one place a longjmp lands.
bool pg_try(void (*f)(void*), void* data, PgError* error) noexcept {
  sigjmp_buf* const saved_stack = PG_exception_stack;
  ErrorContextCallback* const saved_context = error_context_stack;
  MemoryContext const memory = CurrentMemoryContext;
  sigjmp_buf here;
  if (sigsetjmp(here, 0) == 0) {
    PG_exception_stack = &here;
    f(data);
    PG_exception_stack = saved_stack;
    error_context_stack = saved_context;
    return true;
  }
  PG_exception_stack = saved_stack;
  error_context_stack = saved_context;
  MemoryContextSwitchTo(TopMemoryContext);
  if (spent != nullptr) FreeErrorData(spent);
  spent = nullptr;
  error->data = CopyErrorData();
  FlushErrorState();
  MemoryContextSwitchTo(memory);
  return false;
}

void rethrow(PgError error) {
  spent = error.data;
  ReThrowError(error.data);  // copies it
}

void carry_error(PgError error) noexcept {
  if (carried.data != nullptr) FreeErrorData(carried.data);
  carried = error;
}

void raise_carried_error() {
  if (carried.data == nullptr) return;
  const PgError error = carried;
  carried.data = nullptr;
  rethrow(error);
}

void forget_carried_error() noexcept {
  if (carried.data != nullptr) FreeErrorData(carried.data);
  carried.data = nullptr;
}

}  // namespace gcl

// From the engine's outcomes to the user's errors: the one place that maps Errc to SQLSTATE.
//
//   PageId page = *until_done(rel, [&] { return Heap::create(txns()); });
//
// until_done() runs an engine operation until it ends otherwise than by an interrupt that turned out to be harmless;
// errors are raised when the operation's frames are gone, so nothing owned is crossed.
#pragma once

#include "coherence/base/result.hpp"
#include "extension/pg/boundary/pg_error.hpp"
#include "extension/pg/runtime/until_done.hpp"

namespace gcl {

// Raises the ERROR for `outcome`; `rel` may be null.  kInterrupted without anything pending raises a plain cancel.
[[noreturn]] void raise(coherence::Errc outcome, Relation rel);

// As if this process had crashed: the postmaster ends the others of its server, which joins the pool again
// (node.cut-off-joins-again).  The client gets no answer.
[[noreturn]] void end_as_crashed(const char* why);

// For frames of C++ that may throw (PgError from a callback, bad_alloc): runs `f` and lets what it threw leave as an
// ERROR after its frames have been unwound.  `f` returns nothing that owns anything.
template <class F>
auto pg_entry(F f) -> decltype(f()) {
  PgError error{nullptr};
  try {
    return f();
  } catch (const PgError& caught) {
    error = caught;
  } catch (const std::bad_alloc&) {
  }
  if (error.data != nullptr) rethrow(error);
  ereport(ERROR, errcode(ERRCODE_OUT_OF_MEMORY), errmsg("out of memory"));
}

}  // namespace gcl

// pg_call: the way from C++ frames that own something into PostgreSQL (boundary law (a)).  An ERROR becomes the C++
// exception PgError, which unwinds our frames; longjmp crosses none of them.
//
//   try { pg_call([=] { LockAcquire(&tag, ShareLock, false, false); }); } catch (PgError& e) { carry_error(e); }
//
// The function given must not throw and must not own anything: what it captures is copied or trivial.  Frames that own
// nothing may call PostgreSQL directly.
#pragma once

#include <csetjmp>
#include <type_traits>

#include "extension/pg/boundary/pg_error.hpp"

namespace gcl {

// Runs `f(data)`; true if it returned, false with *error filled if it raised an ERROR.
bool pg_try(void (*f)(void*), void* data, PgError* error) noexcept;

template <class F>
auto pg_call(F f) -> decltype(f()) {
  using R = decltype(f());
  static_assert(std::is_void_v<R> || std::is_trivially_copyable_v<R>);
  PgError error{};
  if constexpr (std::is_void_v<R>) {
    if (!pg_try([](void* data) { (*static_cast<F*>(data))(); }, &f, &error)) throw error;
  } else {
    struct Frame {
      F* f;
      R result;
    } frame{&f, {}};
    auto run = [](void* data) {
      Frame* at = static_cast<Frame*>(data);
      at->result = (*at->f)();
    };
    if (!pg_try(run, &frame, &error)) throw error;
    return frame.result;
  }
}

}  // namespace gcl

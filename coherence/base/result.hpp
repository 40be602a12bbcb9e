// Result<T>: a value, or the expected outcome that took its place.  No heap, no exceptions.
//
//   Result<SharedGuard> page = pool.fix_shared(session, id);
//   if (!page) return page.error();
//   use(page->bytes());
//
// An Errc is an outcome a caller must expect (a wait was interrupted, the pool is fenced).  Bugs are VERIFY; a user's
// error becomes an ereport in extension/pg and nowhere else.
#pragma once

#include <cstdint>
#include <new>
#include <utility>

#include "coherence/base/verify.hpp"

namespace coherence {

enum class Errc : uint8_t {
  kOk = 0,
  kInterrupted,   // the host asked the caller to leave (cancel, terminate); nothing was changed: raise, or call again
  kFenced,        // the pool is fenced: a primary died uncleanly; no page may be touched any more
  kTimeout,       // a deadline given by the caller passed; nothing was changed
  kWouldBlock,    // a `try` operation met a holder
  kHeld,          // another transaction holds the page until its end (Session::holder(), bufmgr::Session::held_by())
  kNoHolds,       // a transaction, or all of a node, hold as many pages as they may
  kGivenUp,       // the transaction's holds were taken away, because it was idle; nothing was changed
  kConflict,      // what a serializable transaction is to read was changed since its snapshot
  kUpgrade,       // two transactions have read a page and want to write it: this one is to let the other go on
  kRestart,       // something moved under an optimistic read; run the operation again from its start
  kNoSpace,       // the pool, a page or a ring has no room
  kAtLimit,       // what grows is as large as its format lets it be
  kNoIds,         // no id is free: too many transactions of this node have run for too long
  kNoMemory,      // the process has no memory or descriptor for what the caller needs; nothing was changed
  kTooLarge,      // the value cannot fit any page
  kNotFound,      // no such page, file, key or node
  kExists,        // already there
  kIncompatible,  // another format version, block size, server version, locale
  kBusy,          // a node id, port or file is in use by a process that lives
  kUnrepaired,    // the node has died, and is not repaired yet: try again a moment later
  kCorrupt,       // bytes that no version of this code writes
  kSystem,        // an operating system call failed; errno says which way
  kUnreached,     // a memory node or a peer gave no answer; what was asked may have been done
};
inline constexpr Errc kLastErrc = Errc::kUnreached;

const char* errc_name(Errc) noexcept;

template <class T>
class [[nodiscard]] Result {
 public:
  Result(Errc error) noexcept : error_(error) { VERIFY(error != Errc::kOk); }          // NOLINT: implicit by design
  Result(T value) noexcept : error_(Errc::kOk) { new (&value_) T(std::move(value)); }  // NOLINT
  Result(Result&& other) noexcept : error_(other.error_) {
    if (ok()) new (&value_) T(std::move(other.value_));
  }
  Result& operator=(Result&& other) noexcept {
    if (this != &other) {
      this->~Result();
      new (this) Result(std::move(other));
    }
    return *this;
  }
  ~Result() {
    if (ok()) value_.~T();
  }
  Result(const Result&) = delete;
  Result& operator=(const Result&) = delete;

  bool ok() const noexcept { return error_ == Errc::kOk; }
  explicit operator bool() const noexcept { return ok(); }
  Errc error() const noexcept { return error_; }
  T& operator*() noexcept {
    VERIFY(ok());
    return value_;
  }
  const T& operator*() const noexcept {
    VERIFY(ok());
    return value_;
  }
  T* operator->() noexcept { return &**this; }
  const T* operator->() const noexcept { return &**this; }
  T take() noexcept { return std::move(**this); }

 private:
  Errc error_;
  union {
    T value_;
  };
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() noexcept = default;
  Result(Errc error) noexcept : error_(error) {}  // NOLINT: implicit by design; kOk is success
  bool ok() const noexcept { return error_ == Errc::kOk; }
  explicit operator bool() const noexcept { return ok(); }
  Errc error() const noexcept { return error_; }

 private:
  Errc error_ = Errc::kOk;
};

using Status = Result<void>;

}  // namespace coherence

// Leaves the enclosing function with the error of a Result; the value stays in place.
#define GCL_TRY(expression)                                               \
  do {                                                                    \
    if (auto gcl_try_ = (expression); !gcl_try_) return gcl_try_.error(); \
  } while (0)

// Guards: the only way to touch a page.
//
//   SharedGuard     the page does not change while it lives; other sessions read too.
//   ExclusiveGuard  alone on the page, in the whole cluster; changes go through a MiniTransaction.
//   OptimisticGuard takes nothing and writes nothing; what was read counts only if validate() still says so.
//
// guards.no-page-without-guard: No page is read outside a guard.
// guards.short-lived: No guard is held while its session waits for a lock, a client or a flush.
// guards.ordered-waits: A session that waits for a page under a guard follows one of the orders of wait_order.hpp, and
//     says which; otherwise it uses try_ and restarts.  Debug builds check it.
// guards.torn-until-validated: Bytes read through an OptimisticGuard may be torn: the reader checks offsets before it
//     uses them, copies values out with copy(), and believes nothing before validate().  No user code (comparators)
//     runs on them.
// guards.end-with-statement: A guard is used by the session that made it, and ends before that session's statement
//     does.  The session's ledger releases what an abort left behind.
#pragma once

#include <cstdint>
#include <utility>

#include "bufmgr/base/page.hpp"
#include "bufmgr/copy.hpp"
#include "coherence/base/result.hpp"
#include "coherence/line/line.hpp"

namespace bufmgr {

class Session;

class [[nodiscard]] SharedGuard {
 public:
  SharedGuard() = default;
  SharedGuard(SharedGuard&& other) noexcept { *this = std::move(other); }
  SharedGuard& operator=(SharedGuard&& other) noexcept {
    if (this != &other) {
      if (line_ != nullptr) release();
      session_ = std::exchange(other.session_, nullptr);
      line_ = std::exchange(other.line_, nullptr);
      bytes_ = std::exchange(other.bytes_, nullptr);
      id_ = other.id_;
    }
    return *this;
  }
  ~SharedGuard() {
    if (line_ != nullptr) release();  // most are moved from
  }
  explicit operator bool() const { return line_ != nullptr; }
  PageId id() const { return id_; }
  const std::byte* bytes() const { return bytes_; }
  const PageHeader& header() const { return *reinterpret_cast<const PageHeader*>(bytes_); }
  void release() noexcept;

  // Stores an 8-byte aligned hint word if this node owns the page exclusively (state M); no version, no redo.  Returns
  // whether it was stored.  Readers see the old or the new word, never a mix.
  bool set_hint(uint16_t offset, uint64_t word) noexcept;

  // For PageHolds: coherence::Session::hold() in the guard's mode.
  void hold(uint64_t by) noexcept;

 private:
  friend class BufferPool;
  friend class MiniTransaction;
  Session* session_ = nullptr;
  coherence::Line* line_ = nullptr;
  std::byte* bytes_ = nullptr;
  PageId id_;
};

class [[nodiscard]] ExclusiveGuard {
 public:
  ExclusiveGuard() = default;
  ExclusiveGuard(ExclusiveGuard&& other) noexcept { *this = std::move(other); }
  ExclusiveGuard& operator=(ExclusiveGuard&& other) noexcept {
    if (this != &other) {
      if (line_ != nullptr) release();
      session_ = std::exchange(other.session_, nullptr);
      line_ = std::exchange(other.line_, nullptr);
      bytes_ = std::exchange(other.bytes_, nullptr);
      id_ = other.id_;
    }
    return *this;
  }
  ~ExclusiveGuard() {
    if (line_ != nullptr) release();  // most are moved from
  }
  explicit operator bool() const { return line_ != nullptr; }
  PageId id() const { return id_; }
  const std::byte* bytes() const { return bytes_; }  // changed through MiniTransaction only
  const PageHeader& header() const { return *reinterpret_cast<const PageHeader*>(bytes_); }
  void release() noexcept;

  // As SharedGuard's: optimistic readers see the old or the new word.
  void set_hint(uint16_t offset, uint64_t word) noexcept;

  // As SharedGuard's; or in the weaker mode.
  void hold(uint64_t by, bool exclusive = true) noexcept;

 private:
  friend class BufferPool;
  friend class MiniTransaction;
  Session* session_ = nullptr;
  coherence::Line* line_ = nullptr;
  std::byte* bytes_ = nullptr;
  PageId id_;
};

// Trivially copyable and destructible: an ERROR of the host may jump over it.
class OptimisticGuard {
 public:
  explicit operator bool() const { return line_ != nullptr; }
  PageId id() const { return id_; }
  // Copies bytes [offset, offset + bytes).  REQUIRES: offset + bytes <= kPageSize.
  void copy(uint32_t offset, void* to, uint32_t bytes) const noexcept { copy_from_page(to, bytes_, offset, bytes); }
  template <class T>
  T get(uint32_t offset) const noexcept {
    T value;
    copy(offset, &value, sizeof value);
    return value;
  }
  // For load_page_word() only (guards.torn-until-validated).
  const std::byte* bytes() const noexcept { return bytes_; }
  // One word.  REQUIRES: offset is a multiple of 8 and below kPageSize.
  uint64_t word(uint32_t offset) const noexcept { return load_page_word(bytes_ + offset); }
  // Whether everything read since the guard was made is a page that was valid at one moment (this one).
  bool validate() const noexcept { return line_ != nullptr && line_->validate(version_); }

 private:
  friend class BufferPool;
  coherence::Line* line_ = nullptr;
  const std::byte* bytes_ = nullptr;
  uint64_t version_ = 0;
  PageId id_;
};

}  // namespace bufmgr

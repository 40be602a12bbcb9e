// LocalWord: the 64-bit latch between the processes of one node, one per line, as pure transitions.
//
//   63      32  31..24   23..22  21..19                              18..16    15..0
//   version     unused   msi     x_waiters s_waiters pending         X unused  shared holders
//
// - version grows by one whenever the bytes may have changed: when X ends.  While X is set the bytes may be changing.
// - msi is the node's ownership of the page (I, S, M); shared holders need S or M, a guard for writing needs M.
// - X: one process, or one operation on the line, is alone on the frame.
// - pending: a peer's request is parked; the process that frees the latch hands over
//   (coherence.unlocker-serves-parked).  New holders take the slow path, which grants them a bounded number of turns
//   first.
// - x_waiters, s_waiters: a process sleeps on the line's wake word; x_waiters keeps new shared holders out.
#pragma once

#include <cstdint>

namespace coherence {

enum class MsiState : uint8_t { kInvalid = 0, kShared = 1, kModified = 2 };

struct LocalWord {
  static constexpr uint64_t kSharedOne = 1;
  static constexpr uint64_t kSharedMask = 0xffff;
  static constexpr uint64_t kX = uint64_t{1} << 16;
  static constexpr uint64_t kPending = uint64_t{1} << 19;
  static constexpr uint64_t kSharedWaiters = uint64_t{1} << 20;
  static constexpr uint64_t kExclusiveWaiters = uint64_t{1} << 21;
  static constexpr int kMsiShift = 22;
  static constexpr uint64_t kMsiMask = uint64_t{3} << kMsiShift;
  static constexpr uint64_t kVersionOne = uint64_t{1} << 32;
  static constexpr uint64_t kWaiters = kSharedWaiters | kExclusiveWaiters;

  uint64_t raw = 0;

  constexpr MsiState msi() const { return MsiState(raw >> kMsiShift & 3); }
  constexpr uint32_t version() const { return uint32_t(raw >> 32); }
  constexpr uint32_t shared() const { return uint32_t(raw & kSharedMask); }
  constexpr bool exclusive() const { return raw & kX; }
  constexpr bool pending() const { return raw & kPending; }
  constexpr bool has_waiters() const { return raw & kWaiters; }
  constexpr bool free() const { return !(raw & (kX | kSharedMask)); }

  // The hit paths: what lets a newcomer in without looking further.
  constexpr bool admits_shared() const {
    return !(raw & (kX | kPending | kExclusiveWaiters)) && msi() != MsiState::kInvalid;
  }
  constexpr bool admits_exclusive() const {
    return !(raw & (kX | kPending | kSharedMask)) && msi() == MsiState::kModified;
  }
  constexpr bool readable() const { return !(raw & kX) && msi() != MsiState::kInvalid; }

  constexpr LocalWord with_shared() const { return {raw + kSharedOne}; }
  constexpr LocalWord without_shared() const { return {raw - kSharedOne}; }
  constexpr LocalWord with_exclusive() const { return {raw | kX}; }
  constexpr LocalWord with_msi(MsiState m) const { return {(raw & ~kMsiMask) | uint64_t(m) << kMsiShift}; }
  // X ends: a new version, whether or not bytes changed.
  constexpr LocalWord without_exclusive() const { return {(raw & ~kX) + kVersionOne}; }
  // X becomes one shared holder (a grant for a reader).
  constexpr LocalWord exclusive_to_shared() const { return {((raw & ~kX) + kVersionOne) | kSharedOne}; }
  // Unlocking X is one addition: the version grows and X goes.
  static constexpr uint64_t kUnlockExclusive = kVersionOne - kX;
};

static_assert(LocalWord{LocalWord::kX}.raw + LocalWord::kUnlockExclusive ==
              LocalWord{LocalWord::kX}.without_exclusive().raw);
static_assert(LocalWord{}.with_msi(MsiState::kShared).admits_shared());
static_assert(!LocalWord{}.admits_shared());
static_assert(!LocalWord{}.with_msi(MsiState::kShared).admits_exclusive());
static_assert(LocalWord{}.with_msi(MsiState::kModified).admits_exclusive());
static_assert(!LocalWord{}.with_msi(MsiState::kModified).with_shared().admits_exclusive());
static_assert(!LocalWord{}.with_msi(MsiState::kModified).with_exclusive().admits_shared());
static_assert(LocalWord{}.with_msi(MsiState::kModified).with_exclusive().exclusive_to_shared().shared() == 1);
static_assert(LocalWord{}.with_exclusive().without_exclusive().version() == 1);

}  // namespace coherence

// The names that the table in coherence/protocol.md uses, for tests that print what a line does.
#pragma once

#include <iterator>
#include <string>

#include "coherence/line/line_machine.hpp"

namespace coherence {

inline const char* text(MsiState m) { return m == MsiState::kInvalid ? "I" : m == MsiState::kShared ? "S" : "M"; }

inline const char* text(RequestKind k) {
  static constexpr const char* kNames[] = {"", "PeerRd", "PeerWr", "PeerInv", "PeerCopy", "PeerClaim", "PeerJoin"};
  static_assert(std::size(kNames) == size_t(RequestKind::kPeerJoin) + 1);
  return kNames[int(k)];
}

inline const char* text(ReplyKind k) {
  static constexpr const char* kNames[] = {
      "", "Dropped", "Done", "GrantS", "GrantM", "GrantS, in pool", "GrantM, in pool", "Copy", "Held"};
  static_assert(std::size(kNames) == size_t(ReplyKind::kHeld) + 1);
  return kNames[int(k)];
}

inline const char* text(LineOp op) {
  static constexpr const char* kNames[] = {
      "",          "read",       "probe",   "write", "reclaim", "upgrade", "fallback", "withdraw", "evict", "handover",
      "downgrade", "invalidate", "give up", "claim", "unclaim", "WaitS",   "WaitX",    "WaitU",    "WaitC"};
  static_assert(std::size(kNames) == size_t(LineOp::kWaitClaimed) + 1);
  return kNames[int(op)];
}

inline const char* text(Event::Kind k) {
  static constexpr const char* kNames[] = {
      "fetch shared", "fetch copy", "fetch exclusive", "evict", "batch done", "request", "reply", "gone", "serve"};
  static_assert(std::size(kNames) == size_t(Event::Kind::kServe) + 1);
  return kNames[int(k)];
}

inline std::string text(const LineState& s) {
  std::string t = text(s.msi);
  if (s.op != LineOp::kIdle) t += std::string(" ") + text(s.op);
  if (s.joins) t += ", joins";
  if (s.parked_count) t += ", parked " + std::to_string(s.parked_count);
  if (s.bar) t += ", bar " + std::to_string(s.bar);
  return t;
}

}  // namespace coherence

// What a peer's request meets: a table of what the line is doing, and the kind of the request.
#pragma once

#include "coherence/line/line_state.hpp"

namespace coherence {

enum class Phase : uint8_t {
  kInvalid,  // nothing under way, and state I, S or M
  kShared,
  kModified,
  kMayShare,  // this node's bit may have been a share when a claim met it
  kUpgrading,
  kClaimed,  // waits for the sharers under its claim
  kBusy,     // any other operation
};
inline constexpr int kPhases = int(Phase::kBusy) + 1;

enum class Response : uint8_t {
  kRefuse,
  kPark,
  kServe,            // at once, or parked until the latch is free and the page may leave
  kServeMatched,     // the same, of a reader that was refused as often as the writer that has the page; else refuse
  kParkLower,        // of two upgraders the lower id wins (tie-break); else refuse
  kParkUnlessAsked,  // refuse the node whose own answer is awaited: it would wait for ours before it gives that
  kHold,             // this node's transaction has the page until its end (coherence.held-until-end); before the table
};

constexpr Phase phase_of(const LineState& s) {
  const bool shares = s.msi == MsiState::kShared;
  switch (s.op) {
    case LineOp::kIdle:
      return shares ? Phase::kShared : s.msi == MsiState::kModified ? Phase::kModified : Phase::kInvalid;
    case LineOp::kReadPosted:
    case LineOp::kProbePosted:
    case LineOp::kWaitShared:
    case LineOp::kDowngradePosted:
    case LineOp::kTakeReadPosted:
    case LineOp::kRepairedPosted:
      return Phase::kMayShare;
    case LineOp::kUnclaimPosted:
      return shares ? Phase::kMayShare : Phase::kBusy;
    case LineOp::kUpgradePosted:
    case LineOp::kWaitUpgrade:
      return Phase::kUpgrading;
    case LineOp::kClaimPosted:
    case LineOp::kTakeWritePosted:
      return shares ? Phase::kUpgrading : Phase::kBusy;
    case LineOp::kWaitClaimed:
      return Phase::kClaimed;
    default:
      return Phase::kBusy;
  }
}

namespace request_table {

inline constexpr Response kNo = Response::kRefuse, kPark = Response::kPark, kServe = Response::kServe,
                          kMatch = Response::kServeMatched, kLower = Response::kParkLower,
                          kAsked = Response::kParkUnlessAsked;

// clang-format off
inline constexpr Response kResponses[kPhases][7] = {
    // none  PeerRd PeerWr PeerInv PeerCopy PeerClaim PeerJoin
    {  kNo,   kNo,    kNo,    kNo,     kNo,      kNo,       kNo    },  // invalid
    {  kNo,   kNo,    kServe, kServe,  kNo,      kServe,    kNo    },  // shared
    {  kNo,   kMatch, kServe, kNo,     kMatch,   kNo,       kMatch },  // modified
    {  kNo,   kNo,    kNo,    kNo,     kNo,      kPark,     kNo    },  // may share
    {  kNo,   kNo,    kLower, kLower,  kNo,      kPark,     kNo    },  // upgrading
    {  kNo,   kAsked, kAsked, kNo,     kAsked,   kNo,       kAsked },  // claimed
    {  kNo,   kNo,    kNo,    kNo,     kNo,      kNo,       kNo    },  // busy
};
// clang-format on

}  // namespace request_table

constexpr Response response_in(Phase phase, RequestKind kind) {
  return request_table::kResponses[int(phase)][int(kind)];
}

// Whether the request is about what a node has in this state, whatever is under way.
constexpr bool concerns(MsiState msi, RequestKind kind) {
  if (msi == MsiState::kInvalid) return false;
  return response_in(msi == MsiState::kModified ? Phase::kModified : Phase::kShared, kind) != Response::kRefuse;
}

// Whether a transaction of this node holds what the request wants (coherence.held-until-end).
constexpr bool held_against(const LineState& s, RequestKind kind) {
  if (!concerns(s.msi, kind) || kind == RequestKind::kPeerCopy) return false;
  return s.holds_exclusive != 0 || (s.holds_shared != 0 && !is_reader(kind));
}

}  // namespace coherence

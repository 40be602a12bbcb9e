// Which counter a message belongs to.
#pragma once

#include "coherence/line/line_state.hpp"
#include "coherence/stats/counters.hpp"

namespace coherence {

inline Counter sent_counter(RequestKind kind) {
  return is_reader(kind)                ? Counter::kPeerRdSent
         : kind == RequestKind::kPeerWr ? Counter::kPeerWrSent
                                        : Counter::kPeerInvSent;
}

inline Counter received_counter(RequestKind kind) {
  return is_reader(kind)                ? Counter::kPeerRdReceived
         : kind == RequestKind::kPeerWr ? Counter::kPeerWrReceived
                                        : Counter::kPeerInvReceived;
}

inline Counter reply_counter(ReplyKind kind, bool sent) {
  switch (kind) {
    case ReplyKind::kGrantS:
    case ReplyKind::kGrantSInPool:
      return sent ? Counter::kGrantSSent : Counter::kGrantSReceived;
    case ReplyKind::kGrantM:
    case ReplyKind::kGrantMInPool:
      return sent ? Counter::kGrantMSent : Counter::kGrantMReceived;
    case ReplyKind::kCopy:
      return sent ? Counter::kCopySent : Counter::kCopyReceived;
    case ReplyKind::kHeld:
      return sent ? Counter::kHeldSent : Counter::kHeldReceived;
    case ReplyKind::kDone:
      return sent ? Counter::kDoneSent : Counter::kDoneReceived;
    default:
      return sent ? Counter::kDroppedSent : Counter::kDroppedReceived;
  }
}

}  // namespace coherence

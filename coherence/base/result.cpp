#include "coherence/base/result.hpp"

namespace coherence {

const char* errc_name(Errc error) noexcept {
  switch (error) {
    case Errc::kOk:
      return "ok";
    case Errc::kInterrupted:
      return "interrupted";
    case Errc::kFenced:
      return "fenced";
    case Errc::kTimeout:
      return "timeout";
    case Errc::kWouldBlock:
      return "would block";
    case Errc::kHeld:
      return "held";
    case Errc::kNoHolds:
      return "no holds";
    case Errc::kGivenUp:
      return "given up";
    case Errc::kConflict:
      return "conflict";
    case Errc::kUpgrade:
      return "upgrade";
    case Errc::kRestart:
      return "restart";
    case Errc::kNoSpace:
      return "no space";
    case Errc::kAtLimit:
      return "at its limit";
    case Errc::kNoIds:
      return "no ids";
    case Errc::kNoMemory:
      return "no memory";
    case Errc::kTooLarge:
      return "too large";
    case Errc::kNotFound:
      return "not found";
    case Errc::kExists:
      return "exists";
    case Errc::kIncompatible:
      return "incompatible";
    case Errc::kBusy:
      return "busy";
    case Errc::kUnrepaired:
      return "not repaired yet";
    case Errc::kCorrupt:
      return "corrupt";
    case Errc::kSystem:
      return "system error";
    case Errc::kUnreached:
      return "not reached";
  }
  return "unknown error";
}

}  // namespace coherence

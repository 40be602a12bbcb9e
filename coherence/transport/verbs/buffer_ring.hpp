// BufferRing: bytes that are taken in order and given back in the same order, each piece whole.  It knows places, not
// memory.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>

#include "coherence/base/verify.hpp"

namespace coherence::verbs {

class BufferRing {
 public:
  // A piece that is no longer than all of them fits when there is no other.
  explicit BufferRing(uint32_t bytes) noexcept : bytes_(bytes) {}

  // Where the piece is; none: it does not fit now.  Of 0 bytes: somewhere.
  std::optional<uint32_t> take(uint32_t bytes) {
    if (taken_.empty()) begin_ = end_ = 0;
    const bool wrapped = end_ < begin_ || (end_ == begin_ && used_ != 0);
    const uint32_t room = wrapped ? begin_ - end_ : bytes_ - end_;
    uint32_t at = end_, skipped = 0;
    if (bytes > room) {
      if (wrapped || bytes > begin_) return std::nullopt;
      at = 0;
      skipped = bytes_ - end_;
    }
    end_ = at + bytes;
    used_ += skipped + bytes;
    taken_.push_back({end_, skipped + bytes});
    return at;
  }
  // The oldest.  REQUIRES: there is one.
  void give_back() {
    VERIFY(!taken_.empty());
    begin_ = taken_.front().end;
    used_ -= taken_.front().bytes;
    taken_.pop_front();
  }

 private:
  struct Piece {
    uint32_t end, bytes;  // with what was skipped in front of it
  };
  const uint32_t bytes_;
  uint32_t begin_ = 0, end_ = 0, used_ = 0;
  std::deque<Piece> taken_;
};

}  // namespace coherence::verbs

// Log: a node's write-ahead log on a device of its own, which flushes for all that wait, as one (group commit).
#pragma once

#include <algorithm>
#include <cstdint>

#include "bench/paper/network.hpp"

namespace txn {

class Log {
 public:
  explicit Log(uint64_t flush_ns) : flush_ns_(flush_ns) {}
  // Returns when what was written before is durable: with the flush that begins next.  0 ns: there is no log.
  void flush() {
    if (flush_ns_ == 0) return;
    const uint64_t now = sim::scheduler()->now();
    if (now >= next_end_) {
      end_ = next_end_ = now + flush_ns_;
    } else if (now >= end_) {  // what was the next one is under way
      end_ = next_end_;
      next_end_ += flush_ns_;
    } else if (next_end_ == end_) {
      next_end_ += flush_ns_;
    }
    paper::wait_until(next_end_);
  }

 private:
  const uint64_t flush_ns_;
  uint64_t end_ = 0, next_end_ = 0;  // of the flush under way, and of the one behind it; equal: nobody wants one
};

}  // namespace txn

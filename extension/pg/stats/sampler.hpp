// What this primary says of itself (engine/samples), and what it knows of the others.
//
// Counters are summed here, once a second or when a view asks; nothing is done on the path of a page.
#pragma once

#include "extension/engine/samples/sample_registry.hpp"
#include "extension/engine/txn/transaction.hpp"
#include "extension/pg/boundary/pg.hpp"

namespace gcl {

inline constexpr TimestampTz kSampleUs = 1'000'000;  // how often
inline constexpr TimestampTz kStaleUs = 5'000'000;   // older than this: its primary is stopped, or very busy

engine::SampleRegistry sample_registry(engine::TxnSystem& txns);
// As of now.
void take_sample(engine::TxnSystem& txns, engine::Sample* to);

// The member worker's part.
class Sampler {
 public:
  explicit Sampler(engine::TxnSystem& txns) : txns_(txns), registry_(sample_registry(txns)) { registry_.clear(); }
  // Never waits.  Returns when the next sample is due.
  TimestampTz round();
  void leave() { registry_.clear(); }

 private:
  engine::TxnSystem& txns_;
  engine::SampleRegistry registry_;
  TimestampTz taken_ = 0;
};

}  // namespace gcl

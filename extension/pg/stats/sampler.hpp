// What this primary says of itself (engine/samples), and what it knows of the others.
//
// Counters are summed here, once a second or when a view asks; nothing is done on the path of a page.
#pragma once

#include "extension/engine/samples/sample_registry.hpp"
#include "extension/engine/txn/transaction.hpp"
#include "extension/pg/boundary/pg.hpp"

namespace gcl {

inline constexpr TimestampTz kStaleUs = 5'000'000;  // older than this: its primary is stopped, or very busy

engine::SampleRegistry sample_registry(engine::TxnSystem& txns);
// As of now.
void take_sample(engine::TxnSystem& txns, engine::Sample* to);

// The member worker's part (workers/workers.hpp: Sampling).
void begin_sampling();
// Never waits.  Returns when the next sample is due.
TimestampTz sample_when_due();
void end_sampling();

}  // namespace gcl

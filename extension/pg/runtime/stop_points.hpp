// Stop points in the server (engine/stop): where its processes stand still for a test, and how they wait there.
//
//   stop_here(StopPoint::kDdlStatementSent);       // code of extension/pg, where the process holds nothing
//
// A process that stands at a point shows GclStop_<name> as its wait event.
#pragma once

#include "extension/engine/stop/stop_table.hpp"
#include "extension/pg/boundary/pg.hpp"

namespace gcl {

using engine::StopPoint;

// In the postmaster, where gcl.stop_points is on: makes the table anew in that memory.
size_t stop_points_bytes();
void stop_points_init(void* memory);
// Null: they are switched off (stop.off-unless-asked).
engine::StopTable* stop_table() noexcept;

void stand_in_server(StopPoint point) noexcept;
inline void stop_here(StopPoint point) noexcept {
  if (engine::stop_host.load(std::memory_order_relaxed) != nullptr) [[unlikely]]
    stand_in_server(point);
}

}  // namespace gcl

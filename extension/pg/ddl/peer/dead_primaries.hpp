// What dead primaries have left in the DDL channel is ended by the launcher of one that lives (engine/ddl, DdlRepair);
// a primary that comes back ends by itself what is left of its former life.
#pragma once

#include "coherence/base/ids.hpp"

namespace gcl {

// --- the launcher; none raises or waits
// ------------------------------------------------------------------------------- At each of its wakeups.
void tend_dead_primaries() noexcept;
// Whether that may be due without a wakeup.
bool tends_dead_primaries() noexcept;
// Whether a transaction of a dead primary waits for this one to end it.
bool is_heir() noexcept;
// Of this primary.  REQUIRES: none of its sessions does DDL yet.
void end_former_life() noexcept;

// --- any process
// ------------------------------------------------------------------------------------------------------ Whether the
// dead primary has nothing here any more but what is in doubt: its name may be free again.  If not, the launcher looks
// at once.  REQUIRES: the primary's ids have been ended.
bool ddl_has_ended(coherence::NodeId dead) noexcept;

}  // namespace gcl

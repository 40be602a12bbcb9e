// The states of a DDL transaction, at its coordinator (the primary where the client is) and at a participant (an apply
// worker of another primary).  A table each, in ddl_states.cpp; what has no row in it must not happen.
#pragma once

#include <cstdint>
#include <optional>

namespace engine {

enum class CoordinatorState : uint8_t {
  kNone,
  kOpen,       // it has a slot, or a DDL lock, or is about to
  kPrepared,   // every participant is; the record is in the log
  kCommitted,  // the transaction's own locks may still be held, and so is the DDL lock
};
enum class CoordinatorEvent : uint8_t { kOpen, kPrepare, kCommit, kClose };

enum class ParticipantState : uint8_t {
  kNone,
  kTaking,      // part: its transaction is open
  kPrepared,    // the coordinator may commit any moment: what is locked stays locked until the participant has, too
  kCommitting,  // the coordinator has committed
  kLost,        // its transaction is gone; only the end is of interest
};
enum class ParticipantEvent : uint8_t {
  kEnter,
  kEnterLate,  // what came before was told to a process that is no more
  kPrepare,
  kCommit,
  kFail,  // an error that cannot be undone by rolling back a savepoint
  kLeave,
};

// Nothing: no such transition.
std::optional<CoordinatorState> next(CoordinatorState from, CoordinatorEvent event) noexcept;
std::optional<ParticipantState> next(ParticipantState from, ParticipantEvent event) noexcept;

}  // namespace engine

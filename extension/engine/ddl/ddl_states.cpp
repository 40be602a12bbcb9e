#include "extension/engine/ddl/ddl_states.hpp"

#include <span>

namespace engine {
namespace {

template <class State, class Event>
struct Transition {
  State from;
  Event event;
  State to;
};

using Coordinator = CoordinatorState;
using At = CoordinatorEvent;
constexpr Transition<Coordinator, At> kCoordinator[] = {
    {Coordinator::kNone, At::kOpen, Coordinator::kOpen},
    {Coordinator::kOpen, At::kOpen, Coordinator::kOpen},
    {Coordinator::kOpen, At::kPrepare, Coordinator::kPrepared},
    {Coordinator::kOpen, At::kCommit, Coordinator::kCommitted},  // LOCK TABLE, and what was rolled back to a savepoint
    {Coordinator::kOpen, At::kClose, Coordinator::kNone},
    {Coordinator::kPrepared, At::kCommit, Coordinator::kCommitted},
    {Coordinator::kPrepared, At::kClose, Coordinator::kNone},
    {Coordinator::kCommitted, At::kClose, Coordinator::kNone},
};

using Participant = ParticipantState;
using On = ParticipantEvent;
constexpr Transition<Participant, On> kParticipant[] = {
    {Participant::kNone, On::kEnter, Participant::kTaking},
    {Participant::kNone, On::kEnterLate, Participant::kLost},
    {Participant::kNone, On::kFail, Participant::kNone},
    {Participant::kNone, On::kLeave, Participant::kNone},
    {Participant::kTaking, On::kPrepare, Participant::kPrepared},
    {Participant::kTaking, On::kFail, Participant::kLost},
    {Participant::kTaking, On::kLeave, Participant::kNone},
    {Participant::kPrepared, On::kCommit, Participant::kCommitting},
    {Participant::kPrepared, On::kFail, Participant::kLost},
    {Participant::kPrepared, On::kLeave, Participant::kNone},
    {Participant::kCommitting, On::kFail, Participant::kLost},
    {Participant::kCommitting, On::kLeave, Participant::kNone},
    {Participant::kLost, On::kFail, Participant::kLost},
    {Participant::kLost, On::kLeave, Participant::kNone},
};

template <class State, class Event>
std::optional<State> find(std::span<const Transition<State, Event>> table, State from, Event event) noexcept {
  for (const auto& row : table)
    if (row.from == from && row.event == event) return row.to;
  return {};
}

}  // namespace

std::optional<CoordinatorState> next(CoordinatorState from, CoordinatorEvent event) noexcept {
  return find<CoordinatorState, CoordinatorEvent>(kCoordinator, from, event);
}

std::optional<ParticipantState> next(ParticipantState from, ParticipantEvent event) noexcept {
  return find<ParticipantState, ParticipantEvent>(kParticipant, from, event);
}

}  // namespace engine

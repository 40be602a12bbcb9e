// What all workers of a node have in common: how they begin, wait, and end.
#pragma once

#include <atomic>
#include <initializer_list>

#include "extension/pg/runtime/node.hpp"

namespace gcl {

inline NodeState& node() { return *node_state(); }

// One worker's process: attaches what it needs, runs `body` until that returns, and ends.
void run_worker(Worker which, void (*body)());

// Between two rounds: settings, interrupts, and whether the postmaster is there.
void tick_process();

// Whether this worker may stop: the server is going down, no backend needs it, and none will
// (runtime.workers-outlive-backends).
bool may_stop();

// The same of one that others of the workers need (workers.helpers-end-later).
bool may_stop_behind(std::initializer_list<Worker> others);

// A worker that ended by itself would not be started again with the others, after a crash of the server.
[[noreturn]] void idle_while_fenced();

// The longest sleep, in ms, of the two that events wake (workers.events-wake).
uint32_t idle_ms();

// The member worker's event, for processes of this node.
std::atomic<uint32_t>& member_event();
void count_for_member();

}  // namespace gcl

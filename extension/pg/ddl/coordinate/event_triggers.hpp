// Event triggers of a captured statement: PostgreSQL calls them from the middle of it, and what they do is not its
// doing (ddl.event-triggers-apart).  No hook tells of them, but one that is asked about every function that is looked
// up: while a statement is captured, functions of event triggers are entered through it.
#pragma once

namespace gcl {

void install_event_triggers();

}  // namespace gcl

// nextval() and its kin: the server's for its own sequences, ours for those of all primaries.  Ours behave as the
// server's do: locks, privileges, errors, session caches, read-only transactions.
//
// pg_sequence.cached-values-survive: A session's values of CACHE n survive another session's setval(), as in the
//     server.
// pg_sequence.lastval-misses-identity: lastval() does not notice the identity columns of local tables: the server uses
//     their sequences without a call.
#pragma once

#include "extension/pg/boundary/pg.hpp"

namespace gcl {

// While shared_preload_libraries are processed.
void replace_sequence_functions();

// REQUIRES: is_gcl_sequence().  An identity column needs no privilege on its sequence.
int64 next_of_gcl_sequence(Oid sequence, bool check_privileges);

// DISCARD SEQUENCES.
void forget_sequences() noexcept;

}  // namespace gcl

// The one kind of change made to the server's image: the pointer of a built-in function in fmgr_builtins[].  Made for
// `bthandler` (indexam/), for the functions that tell how large relations are (stats/), for nextval() and its kin
// (sequence/), for domain_in() (ddl/no_user_code), and for pg_export_snapshot() (txn/exported_snapshots).
//
// boundary.patched-before-fork: Changed only in the process that preloads libraries, before it forks; children inherit
//     it.
// boundary.known-or-fatal: Changed only if everything known about the entry and the server holds; otherwise FATAL, and
//     nothing is changed.
// boundary.one-aligned-pointer: One aligned pointer is stored; its page is read-only before and after.
// boundary.jit-asks-table: Compiled expressions (jit) call a built-in function by its name, past the table; one that a
//     hook wants to see they call through the server's wrapper, which asks the table.  So a hook wants to see those
//     changed here.
#pragma once

extern "C" {
#include "postgres.h"

#include "fmgr.h"
}

namespace gcl {

struct Builtin {
  Oid oid;
  const char* name;
  PGFunction native;  // what the entry must name before
  short nargs;
  bool strict = true;
};

// FATAL, in words for the administrator: gcl and this server do not go together, because of `what`.
[[noreturn]] void refuse_server(const char* what);

// FATAL if the running server is of another major version, or an entry is not as described.
void check_server_version();
void check_builtin(const Builtin& builtin);

// Makes the server call `replacement` and checks that it does.  FATAL on any failure.
// REQUIRES: called while shared_preload_libraries are processed.
void replace_builtin(const Builtin& builtin, PGFunction replacement);

}  // namespace gcl

// Databases that this primary could not bring up to date: their sessions are refused the pool's tables, and all other
// databases go on (ddl.member-has-applied-log).  The launcher alone puts them in and out.  One that has caught up at
// last takes part again, and its sessions are let in when what others have locked in it is locked here.
#pragma once

#include "extension/pg/ddl/base/pg.hpp"

namespace gcl {

inline constexpr int kKeptOutMax = 16;

struct KeptOut {
  volatile Oid oid;  // its database here; invalid: a free place
  char database[NAMEDATALEN];
  char reason[256];  // guarded by the node state's lock
  bool served;       // it was up to date once in this primary's membership: sessions may have used its tables
  volatile bool caught_up;
};

// False: too many are kept out.
bool keep_out(Oid oid, const char* database, const char* reason);
void note_caught_up(const char* database);  // if it is kept out
void let_in(const char* database);
void let_in_caught_up();

const KeptOut* kept_out(const char* database);  // null: it is not, or it has caught up
bool is_caught_up(const char* database);        // and not let in yet
bool any_caught_up() noexcept;
// Of those that are not let in.
bool any_kept_out() noexcept;
bool is_kept_out(Oid oid) noexcept;

// ERROR if this session's database is kept out.
void require_let_in();

}  // namespace gcl

// What the processes of one primary share about DDL: whether it serves, and its apply workers.
#pragma once

#include <atomic>

#include "extension/engine/ddl/ddl_words.hpp"
#include "extension/pg/ddl/base/pg.hpp"
#include "extension/pg/ddl/node/kept_out.hpp"

extern "C" {
#include "datatype/timestamp.h"
#include "storage/condition_variable.h"
}

namespace engine {
struct Sample;
}

namespace gcl {

inline constexpr int kApplyWorkersMax = 32;
inline constexpr int kKnownDatabasesMax = 128;

struct DdlWorker {  // guarded by the node state's lock, but for the volatile ones
  char database[NAMEDATALEN];
  char home[NAMEDATALEN];   // where it is connected to, if it is for no database
  int slot;                 // of the channel, that it serves
  pid_t pid;                // 0: not running
  uint32_t order;           // of its start: a process that was told another one comes too late
  bool catch_up_only;       // ends when it has applied the log
  uint64_t until;           // as far as this entry; 0: all of it
  bool caught_up;           // what became of that
  char error[256];          // why it failed; "": it could not say
  bool moved;               // it has ended to make room for one with another home
  volatile uint64_t holds;  // the DDL transaction it takes part in, with all that was locked before; 0: none
  volatile uint64_t busy;   // number of the message it is at; 0: none
  volatile bool engaged;    // it takes part in a DDL transaction
  volatile uint64_t stop;   // messages up to this number are waited for no longer; SIGUSR2 tells
};

struct DdlKnown {
  Oid database;
  uint32_t name;  // hash of the one it was known by
};

// Why a primary takes no part in DDL as long as its server lives.
enum class Refused : uint8_t {
  kNot,
  kAnotherDirectory,  // (ddl.own-data-directory)
  kLaterVersion,      // of gcl wrote the directory's file
  kForgotten,         // (ddl.log-has-end)
  kTooLate,           // (ddl.log-has-end)
};

// What sessions of this primary have cost others by DDL and LOCK TABLE.
struct DdlCounts {
  std::atomic<uint64_t> messages[engine::kDdlKinds];  // by kind; each asks one or several primaries
  std::atomic<uint64_t> answers_found_late;           // by a heartbeat: no wakeup came for them, also later
};

struct DdlNodeState {
  LWLock* lock;
  LWLock* positions;  // of the process that writes one (ddl_position.cpp)
  DdlCounts counts;
  std::atomic<int32_t> lock_holders;                               // sessions of this primary that have a DDL lock
  std::atomic<int32_t> running[engine::kDdlSlotsMax];              // processes that run a DDL statement; 0: none
  std::atomic<int32_t> tag_waiters[1 + engine::kDdlDatabasesMax];  // those that wait for the tag of one
  ConditionVariable wakeup;                                        // ddl_wakeup.hpp
  bool started;              // the launcher ran before, in this life of the server
  bool member;               // takes part; not ended by the launcher's end (ddl.member-has-applied-log)
  volatile bool serving;     // a member, and its catalogs are those of the others, but for databases that are kept out
  volatile bool serves_all;  // and no database is kept out
  KeptOut kept_out[kKeptOutMax];
  volatile bool behind;   // a member that failed to commit what the others have; the launcher sees to it
  volatile bool failing;  // the last attempt to catch up failed
  uint64_t life;          // of the data directory; 0: not begun (data_life.hpp)
  volatile Refused refused;
  char refusal[128];               // kAnotherDirectory, kLaterVersion: how that is known
  volatile uint64_t entry;         // of the log: the newest that was looked at while catching up
  char avoided_home[NAMEDATALEN];  // not to be a worker's: the database is to be dropped or renamed
  TimestampTz error_at;            // of the last replay here that failed; 0: none did
  char error[256];                 // guarded by the lock, as error_at
  DdlWorker workers[kApplyWorkersMax];
  int known_count;  // guarded by the lock, as known
  DdlKnown known[kKnownDatabasesMax];
};

DdlNodeState& ddl_node_state();
// How this primary stands to the DDL of the others, for views.
void ddl_standing(engine::Sample* to);
// What the layers below ask (runtime/ddl_hooks.hpp).
bool serves_here() noexcept;
const volatile bool* serves_all_flag() noexcept;
void require_caught_up();
void set_serving(bool serving) noexcept;
// What the other primaries have committed is not here: no session uses the pool's tables until the launcher has caught
// up.
void fall_behind() noexcept;
// An apply worker for no database ends, and makes room for one that is connected to another database than this one.
[[noreturn]] void leave_home();
[[noreturn]] void raise_refusal();
// Histories that have caught up since this primary joined: what came after that was done here when it was done
// (ddl.workers-read-log-once).
bool is_up_to_date(Oid position, const char* history);
void note_up_to_date(Oid position, const char* history);
void forget_what_is_up_to_date() noexcept;
// This process runs a DDL statement, for the launcher (ddl.idle-holder-ended); the second of them may be called again.
void note_ddl_begins() noexcept;
void note_ddl_ended() noexcept;
void note_ddl_error(const char* database, const char* text);
void install_node_state();  // shared memory, the launcher, and the gate before new connections

}  // namespace gcl

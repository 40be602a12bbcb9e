#include "extension/pg/workers/checkpointer.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "coherence/pool/pool.hpp"
#include "coherence/region/memory_file.hpp"
#include "coherence/region/pool_outline.hpp"
#include "coherence/region/since_save.hpp"
#include "extension/pg/boundary/wait_events.hpp"
#include "extension/pg/runtime/kept_wal.hpp"
#include "extension/pg/runtime/node.hpp"
#include "extension/pg/runtime/raise.hpp"
#include "extension/pg/runtime/server_stop.hpp"
#include "extension/pg/runtime/settings.hpp"
#include "recovery/checkpoint.hpp"

extern "C" {
#include "access/xlog.h"
#include "miscadmin.h"
#include "postmaster/interrupt.h"
#include "storage/latch.h"
}

namespace gcl {

namespace {

constexpr long kPollMs = 50;        // while the command runs
constexpr long kRetrySeconds = 30;  // after it has failed, and twice as long each time, up to gcl.checkpoint_timeout
constexpr int kNotNeeded = 2;       // exit code: nothing is new, or another makes one
constexpr size_t kSaidMax = 4096;   // bytes of what it says that are told

const char* durable_path() { return node_pool()->coherence_pool().durable_path(); }

long now_s() { return long(time(nullptr)); }

// False: there is none.
bool look_at_checkpoint(struct stat* found) {
  return stat(coherence::BesideCopy(durable_path(), coherence::BesideCopy::kCheckpoint).text, found) == 0;
}

// --- the command -----------------------------------------------------------------------------------------------------

class Command {
 public:
  // Starts it, in a process group of its own; false: it cannot be, errno says why.
  bool start(const char* command) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return false;
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_adddup2(&files, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&files, ends[1], STDERR_FILENO);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
    const char* arguments[] = {"sh", "-c", command, nullptr};
    const int error = posix_spawn(&pid_, "/bin/sh", &files, &attributes, const_cast<char* const*>(arguments), environ);
    posix_spawn_file_actions_destroy(&files);
    posix_spawnattr_destroy(&attributes);
    close(ends[1]);
    out_ = ends[0];
    if (error != 0) pid_ = 0;
    errno = error;
    return error == 0;
  }
  ~Command() {
    end();
    if (out_ >= 0) close(out_);
  }
  // Whether it has ended; then status() says how.  Waits for that as long as the worker's latch lets it.
  bool wait() {
    read_some();
    const pid_t ended = waitpid(pid_, &status_, WNOHANG);
    if (ended == 0) {
      (void)WaitLatch(MyLatch, WL_LATCH_SET | WL_TIMEOUT | WL_EXIT_ON_PM_DEATH, kPollMs,
                      wait_event(WaitEvent::kCheckpoint));
      ResetLatch(MyLatch);
      return false;
    }
    if (ended < 0) status_ = -1;
    read_some();
    pid_ = 0;
    return true;
  }
  void end() {
    if (pid_ <= 0) return;
    kill(-pid_, SIGKILL);
    (void)waitpid(pid_, &status_, 0);
    pid_ = 0;
  }
  int exit_code() const { return WIFEXITED(status_) ? WEXITSTATUS(status_) : -1; }
  int status() const { return status_; }
  // What it said last, without the end of its last line.
  const char* said() {
    while (length_ > 0 && said_[length_ - 1] == '\n') --length_;
    said_[length_] = '\0';
    return said_;
  }

 private:
  void read_some() {
    pollfd ready{out_, POLLIN, 0};
    while (poll(&ready, 1, 0) > 0) {
      if (length_ == kSaidMax) {  // the end of it says more
        memmove(said_, said_ + kSaidMax / 2, kSaidMax / 2);
        length_ = kSaidMax / 2;
      }
      const ssize_t count = read(out_, said_ + length_, kSaidMax - length_);
      if (count <= 0) return;
      length_ += size_t(count);
    }
  }

  pid_t pid_ = 0;
  int out_ = -1, status_ = 0;
  char said_[kSaidMax + 1];
  size_t length_ = 0;
};

// Where the command finds what was installed with this server.
void name_programs() {
  char directory[MAXPGPATH];
  strlcpy(directory, my_exec_path, sizeof directory);
  get_parent_directory(directory);
  setenv("GCL_BINDIR", directory, 1);
}

// Whether it succeeded.
bool run(const char* text) {
  Command command;
  if (!command.start(text)) {
    ereport(WARNING, errmsg("gcl: no checkpoint was made: cannot start a process: %m"));
    return false;
  }
  while (!command.wait())
    if (server_stops()) return true;  // and it is ended
  if (command.exit_code() == kNotNeeded) return true;
  if (command.exit_code() == 0) {
    ereport(LOG, errmsg("gcl: %s", command.said()));
    return true;
  }
  ereport(WARNING, errmsg("gcl: no checkpoint was made: the command failed (status %d)", command.status()),
          errdetail("The command (gcl.checkpoint_command) was: %s\n%s", text, command.said()),
          errhint("WAL is kept until there is one, or the pool is saved by a stop of all primaries."));
  return false;
}

// From where on the checkpoint that is there needs this server's log; 0: it does not speak of it.
coherence::Result<uint64_t> needed_from(coherence::Problem* problem) {
  const auto copy = coherence::outline_pool(durable_path(), problem);
  if (!copy) return copy.error();
  const auto there = recovery::read_checkpoint(durable_path(), copy->pool_id, copy->saves, problem);
  if (!there) return there.error();
  if (!coherence::sync_directory_of(durable_path()))  // checkpoint.name-durable-first
    return problem->set(coherence::Errc::kSystem, "cannot sync the directory of %s: %s", durable_path(),
                        strerror(errno));
  const uint64_t self = node_pool()->node().value, incarnation = node_pool()->coherence_node().incarnation();
  for (const recovery::Checkpoint::Log& log : there->logs)
    if (log.node == self && log.after < incarnation && incarnation <= log.upto) return log.position;
  return 0;
}

}  // namespace

bool Checkpointer::is_due() const {
  if (settings.checkpoint_command[0] == '\0' || settings.checkpoint_timeout_s == 0) return false;
  const long now = now_s(), since_call = now - called_s_;
  if (failed_ > 0)
    return since_call >= std::min<long>(settings.checkpoint_timeout_s, kRetrySeconds << std::min<long>(failed_ - 1, 8));
  struct stat found {};
  const long last = look_at_checkpoint(&found) ? std::max(called_s_, long(found.st_mtime)) : called_s_;
  if (now - last >= settings.checkpoint_timeout_s) return true;
  return since_call >= kRetrySeconds && kept_wal_bytes() >> 20 >= uint64_t(settings.checkpoint_wal_size_mb);
}

// workers.own-slot-advanced
void Checkpointer::let_go_of_wal() {
  struct stat found {};
  if (!look_at_checkpoint(&found) || (found.st_mtim.tv_sec == seen_s_ && found.st_mtim.tv_nsec == seen_ns_)) return;
  seen_s_ = found.st_mtim.tv_sec, seen_ns_ = found.st_mtim.tv_nsec;
  coherence::Problem problem;
  const auto from = pg_entry([&] { return needed_from(&problem); });
  if (!from)
    ereport(WARNING, errmsg("gcl: the pool's checkpoint cannot be read: %s", problem.text),
            errhint("WAL is kept until there is another one. Without it the pool could not be made again if memory "
                    "lost it: stop all primaries, which saves the pool."));
  else if (*from != 0)
    release_wal_before(*from);
}

void Checkpointer::round() {
  if (called_s_ == 0) called_s_ = now_s();
  let_go_of_wal();
  if (!is_due()) return;
  name_programs();
  failed_ = run(settings.checkpoint_command) ? 0 : failed_ + 1;
  called_s_ = now_s();
  let_go_of_wal();
}

}  // namespace gcl

#include "extension/pg/runtime/node.hpp"

#include <signal.h>

#include "coherence/message/slots.hpp"
#include "extension/compatibility.hpp"
#include "extension/pg/boundary/monotonic.hpp"
#include "extension/pg/boundary/wait_events.hpp"
#include "extension/pg/runtime/commit_hold.hpp"
#include "extension/pg/runtime/copied_directory.hpp"
#include "extension/pg/runtime/lone_repair.hpp"
#include "extension/pg/runtime/mixed_commits.hpp"
#include "extension/pg/runtime/own_wait.hpp"
#include "extension/pg/runtime/relation_record.hpp"
#include "extension/pg/runtime/settings.hpp"
#include "extension/pg/runtime/stop_points.hpp"

extern "C" {
#include "replication/slot.h"
#include "utils/ps_status.h"
}

namespace gcl {

using coherence::Errc;
using coherence::Problem;

namespace {

bufmgr::BufferPool* the_pool = nullptr;
recovery::RingRepair* the_redo = nullptr;
NodeState* state = nullptr;
engine::TxnShared* txn_shared = nullptr;
engine::HoldTable* holds = nullptr;
char refusal[512] = "";
shmem_request_hook_type next_request = nullptr;
shmem_startup_hook_type next_startup = nullptr;

constexpr long kRejoinPauseUs = 20'000;
constexpr int64 kTellUs = 10'000'000;

uint32_t session_slots() { return uint32_t(MaxBackends) + NUM_AUXILIARY_PROCS; }

void request_memory() {
  if (next_request) next_request();
  RequestAddinShmemSpace(sizeof(NodeState) + 64);
  RequestAddinShmemSpace(own_waits_bytes(session_slots()) + 64);
  RequestAddinShmemSpace(mixed_commits_bytes(session_slots()) + 64);
  RequestAddinShmemSpace(commit_hold_bytes(session_slots()) + 64);
  if (settings.stop_points) RequestAddinShmemSpace(stop_points_bytes() + 64);
}

void make_state() {
  bool found;
  LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
  state = static_cast<NodeState*>(ShmemInitStruct("gcl node", sizeof(NodeState), &found));
  if (!found) {
    memset(static_cast<void*>(state), 0, sizeof *state);
    new (state) NodeState{};
    ConditionVariableInit(&state->answers);
    for (auto& proc : state->worker_proc) proc.store(-1);
    SpinLockInit(&state->changes.lock);
  }
  void* waits = ShmemInitStruct("gcl own waits", own_waits_bytes(session_slots()), &found);
  if (!found) own_waits_init(waits, session_slots());
  void* commits = ShmemInitStruct("gcl mixed commits", mixed_commits_bytes(session_slots()), &found);
  if (!found) mixed_commits_init(commits, session_slots());
  void* hold = ShmemInitStruct("gcl commit hold", commit_hold_bytes(session_slots()), &found);
  if (!found) commit_hold_init(hold, session_slots());
  if (settings.stop_points) {
    void* stops = ShmemInitStruct("gcl stop points", stop_points_bytes(), &found);
    if (!found) stop_points_init(stops);
  }
  LWLockRelease(AddinShmemInitLock);
}

uint32_t frames_of_cache() { return uint32_t(uint64_t(settings.cache_size_kb) * 1024 / coherence::kPageSize); }

// What an operation holds while it waits for one more page.  With a frame for each of these in every session, and one
// to spare, sessions can wait for each other's latches but never all of them for a frame.
constexpr uint32_t kFramesHeldMax = 3;

void check_cache_size() {
  const uint32_t needed = kFramesHeldMax * session_slots() + 1;
  if (frames_of_cache() >= needed) return;
  const uint64_t kilobytes = uint64_t{needed} * (coherence::kPageSize / 1024);
  ereport(FATAL, errcode(ERRCODE_CONFIG_FILE_ERROR),
          errmsg("gcl.cache_size = %dkB is too small for %u sessions", settings.cache_size_kb, session_slots()),
          errdetail("Each session may need %u pages of %u kB at once.", kFramesHeldMax, coherence::kPageSize / 1024),
          errhint("Set gcl.cache_size to %llukB or more, or lower max_connections and max_worker_processes.",
                  static_cast<unsigned long long>(kilobytes)));
}

bool pool_is_saved() { return settings.pool_file != nullptr && settings.pool_file[0] != '\0'; }

void check_settings() {
  if (old_snapshot_threshold >= 0)
    ereport(FATAL, errcode(ERRCODE_CONFIG_FILE_ERROR), errmsg("gcl needs old_snapshot_threshold = -1"));
  if (wal_level < WAL_LEVEL_REPLICA)
    ereport(FATAL, errcode(ERRCODE_CONFIG_FILE_ERROR), errmsg("gcl needs wal_level replica or higher"));
  if (pool_is_saved() && max_replication_slots == 0)
    ereport(FATAL, errcode(ERRCODE_CONFIG_FILE_ERROR),
            errmsg("gcl needs a replication slot for the WAL of this primary"),
            errdetail("The slot keeps what has been written since the pool was last saved."),
            errhint("Set max_replication_slots to 1 or more."));
  if (settings.node_id < 0)
    ereport(FATAL, errcode(ERRCODE_CONFIG_FILE_ERROR), errmsg("gcl.pool is set, and gcl.node_id is not"),
            errhint("Give each primary of the pool a gcl.node_id of its own, from 1 on."));
  if (session_slots() > uint32_t(coherence::kSessionsMax))
    ereport(
        FATAL, errcode(ERRCODE_CONFIG_FILE_ERROR),
        errmsg("a primary of a gcl pool has at most %d processes, not %u", coherence::kSessionsMax, session_slots()),
        errhint("Lower max_connections, max_worker_processes, autovacuum_max_workers or max_wal_senders."));
  check_cache_size();
}

bool over_network() { return settings.transport != 0; }
// Where people look for it.
const char* pool_name() { return over_network() ? settings.memory_nodes : settings.pool; }

// What helps when the pool could not be joined.
const char* hint_for(Errc outcome) {
  switch (outcome) {
    case Errc::kUnrepaired:
      return "Another primary repairs it: see its log. With a larger gcl.rejoin_timeout this server would wait longer.";
    case Errc::kBusy:
      return "Each primary of the pool needs a gcl.node_id of its own.";
    case Errc::kUnreached:
      return "Start gcl_memnode, and look whether gcl.memory_nodes, and the gcl.listen_address of each primary, can be "
             "reached from the other machines. A primary that reaches memory reaches all others, or does not join.";
    case Errc::kNotFound:
      if (over_network())
        return "gcl.memory_nodes is where memory node 0 of the pool listens; gcl.node_id is a number the pool has room "
               "for.";
      return "gcl.pool and gcl.pool_file name the files that gclctl made; gcl.node_id is a number it made room for.";
    case Errc::kIncompatible:
      return "All primaries of a pool have one major version of PostgreSQL, one C library, one gcl.locale, and "
             "versions of gcl with one pool format and one protocol. Use the software that the pool was made for; with "
             "another "
             "protocol, stop all primaries before the first starts with it.";
    case Errc::kNoSpace:
      return "Give the file system more room, or choose a smaller gcl.cache_size.";
    case Errc::kCorrupt:
      return "Restore all files of the pool, or make a new one with gclctl; gclctl verify names what is damaged.";
    case Errc::kSystem:
      if (over_network()) return "The log of gcl_memnode may say more.";
      return "The account of the server must be able to read and write the pool's files and their directories.";
    default:
      return nullptr;
  }
}

int sqlstate_for(Errc outcome) {
  if (outcome == Errc::kNoSpace) return ERRCODE_DISK_FULL;
  return outcome == Errc::kCorrupt ? ERRCODE_DATA_CORRUPTED : ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE;
}

// In the process that has this primary's sockets, a child of the postmaster: so that ps names it.
void show_network_worker() {
  IsUnderPostmaster = true;
  init_ps_display("gcl network worker");
}

coherence::TransportSettings transport_settings() {
  static constexpr const char* kKinds[] = {"shm", "tcp", "verbs"};  // gcl.transport's
  return {.kind = kKinds[settings.transport],
          .memory_nodes = settings.memory_nodes,
          .listen = settings.listen_address,
          .key_file = settings.key_file,
          .certificate_file = settings.certificate_file,
          .certificate_key_file = settings.certificate_key_file,
          .ca_file = settings.ca_file,
          .device = settings.rdma_device,
          .device_port = settings.rdma_port,
          .gid_index = settings.rdma_gid_index,
          .worker_begins = show_network_worker};
}

// Behind TxnShared.
size_t holds_at() { return (engine::TxnShared::bytes_for(session_slots()) + 63) & ~size_t{63}; }
// What operations need at the same time is left to them (kFramesHeldMax).
uint32_t holds_max() {
  const uint32_t needed = kFramesHeldMax * session_slots() + 1, frames = frames_of_cache();
  return frames > needed + 1 ? engine::HoldTable::entries_for(frames - needed) : 1;
}

// Becomes a node of the pool; null with *outcome if it cannot.
bufmgr::BufferPool* try_join(Errc* outcome, Problem* problem) {
  const std::string compatibility = server_compatibility(PG_VERSION_NUM, BLCKSZ, settings.locale);
  ServerLoneRepair alone({uint8_t(settings.node_id)});
  const bufmgr::NodeOptions options{
      .files = {.path = settings.pool,
                .durable_path = pool_is_saved() ? settings.pool_file : nullptr,
                .compatibility = compatibility.c_str()},
      .transport = transport_settings(),
      .node = {uint8_t(settings.node_id)},
      .frames = frames_of_cache(),
      .sessions_max = session_slots(),
      .extra_bytes = holds_at() + engine::HoldTable::bytes_for(holds_max(), session_slots()),
      .alone = &alone};
  auto made = bufmgr::BufferPool::create_node(options, problem);
  if (made) return made.take().release();  // lives as long as the server; its processes inherit it
  *outcome = made.error();
  return nullptr;
}

// The postmaster has its signals blocked now.
bool asked_to_stop() {
  sigset_t pending;
  if (sigpending(&pending) != 0) return false;
  return sigismember(&pending, SIGTERM) == 1 || sigismember(&pending, SIGINT) == 1 ||
         sigismember(&pending, SIGQUIT) == 1;
}

// Waits while the survivors have not done with this node's former incarnation; `again`, after a crash restart, also
// while the network is away (extension.crash-restart-joins-again).  The postmaster has no latch to sleep on here.
bufmgr::BufferPool* join(bool again, Errc* outcome, Problem* problem) {
  const int64_t began = monotonic_us();
  int64_t reached = began, told = 0;
  for (Errc told_of = Errc::kOk;;) {
    if (bufmgr::BufferPool* pool = try_join(outcome, problem)) {
      if (const int64_t waited = monotonic_us() - began; told != 0)
        ereport(LOG, errmsg("gcl: node %d can join after %.1f s", settings.node_id, double(waited) / 1e6));
      return pool;
    }
    const int64_t now = monotonic_us();
    const bool away = again && *outcome == Errc::kUnreached;
    if (away) reached = now;
    if (!away && (*outcome != Errc::kUnrepaired || now - reached > settings.rejoin_timeout_s * USECS_PER_SEC))
      return nullptr;
    if (asked_to_stop()) ereport(FATAL, errcode(ERRCODE_ADMIN_SHUTDOWN), errmsg("gcl: stopped while waiting to join"));
    if (told_of != *outcome || now - told > kTellUs) {
      if (away)
        ereport(LOG, errmsg("gcl: node %d waits until it reaches its pool again", settings.node_id),
                errdetail("%s", problem->text));
      else
        ereport(LOG,
                errmsg("gcl: node %d waits until the other primaries have repaired what its former incarnation had",
                       settings.node_id));
      told = now;
      told_of = *outcome;
    }
    pg_usleep(kRejoinPauseUs);
  }
}

// After a crash restart: the former object is an incarnation of dead processes.  All of them have ended, but for a log
// collector, which never had to do with the pool.
bool give_up_former_incarnation() {
  if (the_pool == nullptr) return false;
  the_pool->coherence_node().give_up();
  delete the_redo;
  the_redo = nullptr;
  delete the_pool;
  the_pool = nullptr;
  txn_shared = nullptr;
  holds = nullptr;
  refusal[0] = '\0';
  return true;
}

void start_node() {
  if (next_startup) next_startup();
  if (!node_configured() || IsUnderPostmaster) return;
  make_state();
  register_wait_events();
  if (!IsPostmasterEnvironment) return;  // a single-user server does not open the pool
  check_settings();
  require_own_directory();
  const bool again = give_up_former_incarnation();
  Problem problem;
  Errc outcome = Errc::kOk;
  the_pool = join(again, &outcome, &problem);
  if (the_pool != nullptr) {
    the_redo = new recovery::RingRepair(*the_pool);
    the_pool->coherence_node().set_repair(the_redo);
    txn_shared = engine::TxnShared::create(the_pool->extra_memory(), session_slots());
    holds = engine::HoldTable::create(the_pool->extra_memory() + holds_at(), holds_max(), session_slots(),
                                      &the_pool->coherence_node().fence_word());
    relation_record_pool_id = the_pool->coherence_pool().pool_id();
    ereport(LOG, errmsg("gcl: joined pool \"%s\" as node %d", pool_name(), settings.node_id));
  } else if (outcome == Errc::kFenced) {
    snprintf(refusal, sizeof refusal, "%s", problem.text);
    ereport(LOG, errmsg("gcl: the pool is fenced; gcl tables cannot be used until the cluster is repaired"),
            errdetail("%s", problem.text));
  } else {
    const char* hint = hint_for(outcome);
    ereport(FATAL, errcode(sqlstate_for(outcome)),
            errmsg("could not join the gcl pool \"%s\" as node %d", pool_name(), settings.node_id),
            errdetail("%s", problem.text), hint != nullptr ? errhint("%s", hint) : 0);
  }
}

}  // namespace

void install_node() {
  next_request = shmem_request_hook;
  shmem_request_hook = request_memory;
  next_startup = shmem_startup_hook;
  shmem_startup_hook = start_node;
}

bufmgr::BufferPool* node_pool() { return the_pool; }
recovery::RingRepair* node_redo() { return the_redo; }
NodeState* node_state() { return state; }
engine::TxnShared* node_txn_shared() { return txn_shared; }
engine::HoldTable* node_holds() { return holds; }
bool node_configured() { return settings.pool != nullptr && settings.pool[0] != '\0'; }

const char* fence_reason() {
  if (the_pool == nullptr) return refusal;
  const char* reason = the_pool->coherence_node().fence_reason();
  return reason[0] != '\0' ? reason : "a node did not leave the pool in order";
}

void wake_worker(Worker worker) noexcept {
  if (state == nullptr) return;
  const int proc = state->worker_proc[int(worker)].load(std::memory_order_acquire);  // pairs with the worker's start
  if (proc >= 0) SetLatch(&ProcGlobal->allProcs[proc].procLatch);
}

}  // namespace gcl

#include "coherence/transport/shm/local_pool.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "coherence/base/verify.hpp"
#include "coherence/region/memory_file.hpp"
#include "coherence/region/node_table.hpp"
#include "coherence/region/pool_header.hpp"
#include "coherence/region/pool_lock.hpp"
#include "coherence/region/region_file.hpp"
#include "coherence/region/saved_file.hpp"
#include "coherence/region/table_changes.hpp"
#include "coherence/transport/shm/deaths.hpp"
#include "coherence/transport/shm/mapped_pool.hpp"

namespace coherence {
// Memory node 0's file gets its name last.
static Status make(const PoolFiles& files, const PoolHeader& first, const PoolSpec& spec, Problem* problem) {
  const auto header = std::make_unique<PoolHeader>();
  for (uint32_t k = first.memory_nodes; k-- > 0;) {
    memcpy(static_cast<void*>(header.get()), &first, sizeof first);
    lay_out_region(spec, k, header.get());
    GCL_TRY(make_region(files.path, *header, problem));
  }
  return {};
}

Result<std::unique_ptr<Pool>> LocalPool::create(const PoolFiles& files, const PoolSpec& spec, Problem* problem) {
  PoolLock lock(files.path);
  if (!lock.held()) return problem->set(Errc::kSystem, "cannot lock %s.lock: %s", files.path, strerror(errno));
  if (access(files.path, F_OK) == 0) return problem->set(Errc::kExists, "pool %s exists", files.path);
  if (files.durable_path && access(files.durable_path, F_OK) == 0)
    return problem->set(Errc::kExists, "pool file %s exists", files.durable_path);
  if (spec.nodes_max == 0 || spec.nodes_max > uint32_t(kNodesMax) || strlen(spec.compatibility) >= kCompatibilityMax)
    return problem->set(Errc::kIncompatible, "a pool has 1 to %d nodes, and compatibility lines shorter than %u bytes",
                        kNodesMax, kCompatibilityMax);
  if (spec.memory_nodes == 0 || spec.memory_nodes > uint32_t(kMemoryNodesMax))
    return problem->set(Errc::kIncompatible, "a pool has 1 to %d memory nodes, not %u", kMemoryNodesMax,
                        spec.memory_nodes);

  auto header = std::make_unique<PoolHeader>();
  header->magic = kPoolMagic;
  header->format_version = kPoolFormatVersion;
  header->block_size = kPageSize;
  header->nodes_max = spec.nodes_max;
  header->state = PoolState::kClean;
  if (getrandom(&header->pool_id, sizeof header->pool_id, 0) < 0) return Errc::kSystem;
  header->memory_nodes = spec.memory_nodes;
  memcpy(header->compatibility, spec.compatibility, strlen(spec.compatibility));
  for (uint32_t k = 0; k < spec.memory_nodes; k++) {
    lay_out_region(spec, k, header.get());
    header->memory_bytes[k] = header->bytes;
  }

  std::unique_ptr<MappedPool> pool(new MappedPool(files));
  Status ok = make(files, *header, spec, problem);
  if (ok) ok = pool->map_first(problem);
  if (ok) ok = pool->map_others(problem);
  if (ok && spec.repairs_deaths) pool->table_->after_death.store(AfterDeath::kRepair, std::memory_order_relaxed);
  if (ok && spec.records_deaths) pool->table_->records_deaths.store(1, std::memory_order_relaxed);
  if (ok && files.durable_path) {
    ok = pool->save(problem);
    if (!ok) unlink_parts(files.durable_path, spec.memory_nodes);
  }
  if (!ok) {
    unlink_parts(files.path, spec.memory_nodes);
    return ok.error();
  }
  return std::unique_ptr<Pool>(std::move(pool));
}

Result<std::unique_ptr<Pool>> LocalPool::open(const PoolFiles& files, Problem* problem) {
  PoolLock lock(files.path);
  if (!lock.held()) return problem->set(Errc::kSystem, "cannot lock %s.lock: %s", files.path, strerror(errno));
  auto pool = open_locked(files, problem);
  if (!pool) return pool.error();
  return std::unique_ptr<Pool>(pool.take());
}

Result<std::unique_ptr<Pool>> LocalPool::serve(const PoolFiles& files, Problem* problem) {
  PoolLock lock(files.path);
  if (!lock.held()) return problem->set(Errc::kSystem, "cannot lock %s.lock: %s", files.path, strerror(errno));
  auto pool = open_locked(files, problem, Use::kServe);
  if (!pool) return pool.error();
  return std::unique_ptr<Pool>(pool.take());
}

// Memory node 0's file is locked by the process that serves it.
Status LocalPool::lock_file(int fd, const char* path, Use use, Problem* problem) {
  if (flock(fd, (use == Use::kServe ? LOCK_EX : LOCK_SH) | LOCK_NB) == 0) return {};
  if (errno == EWOULDBLOCK) return problem->set(Errc::kBusy, "pool %s is served over a network by a process", path);
  return problem->set(Errc::kSystem, "cannot lock %s: %s", path, strerror(errno));
}

// Whether nodes serve that reach the pool by links (`by_links`), or as its files.
static bool some_serve(const MappedPool& pool, bool by_links) noexcept {
  for (uint32_t n = 0; n < pool.nodes_max(); n++) {
    const NodeEntry& entry = pool.table().node[n];
    const NodeInfo node{.state = entry.state.load(std::memory_order_acquire)};  // pairs with TableChanges::change()
    if (node.serves() && (entry.by_links.load(std::memory_order_relaxed) != 0) == by_links) return true;
  }
  return false;
}

Result<std::unique_ptr<MappedPool>> LocalPool::open_locked(const PoolFiles& files, Problem* problem, Use use) {
  if (access(files.path, F_OK) != 0 && errno == ENOENT && files.durable_path) {
    unlink_parts(RestartPath(files.path).text, kMemoryNodesMax);  // of a process that died: as much memory as the pool
    GCL_TRY(load(files, files.path, Which::kClean, use == Use::kServe ? Parts::kFirst : Parts::kAll, problem));
  }
  std::unique_ptr<MappedPool> pool(new MappedPool(files));
  {
    File file(::open(files.path, O_RDWR | O_CLOEXEC));
    if (!file.open())
      return problem->set(errno == ENOENT ? Errc::kNotFound : Errc::kSystem, "cannot open pool %s: %s", files.path,
                          strerror(errno));
    auto header = std::make_unique<PoolHeader>();
    GCL_TRY(read_header(file.fd(), files.path, header.get(), problem));
    GCL_TRY(check_header(*header, files.compatibility, files.path, problem));
    GCL_TRY(check_whole(file.fd(), *header, false, files.path, problem));
    GCL_TRY(lock_file(file.fd(), files.path, use, problem));
    if (use == Use::kServe) pool->served_ = fcntl(file.fd(), F_DUPFD_CLOEXEC, 0);
  }
  GCL_TRY(pool->map_first(problem));
  if (use == Use::kOpen) GCL_TRY(pool->map_others(problem));
  // Of nodes that were here when another process served the pool, the one that serves it now says what becomes of them.
  if (use == Use::kOpen || !some_serve(*pool, true)) (void)look_for_dead(*pool);
  if (use == Use::kServe && some_serve(*pool, false))
    return problem->set(Errc::kBusy, "nodes of this machine are in pool %s", files.path);
  if (const TableChanges table(pool->table(), pool->nodes_max()); table.fenced())
    return problem->set(Errc::kFenced, "pool %s was not closed cleanly: %s", files.path, table.fence_reason());
  if (use == Use::kOpen) pool->remove_uncounted();  // another process may be about to serve it
  return pool;
}

// Though some node died: of a pool that is opened, all deaths count that are certain.
static bool nobody_lives(const NodeTable& table, uint32_t nodes_max) noexcept {
  if (!table.repairs_deaths()) return false;
  bool some_died = false;
  for (uint32_t n = 0; n < nodes_max; n++) {
    const NodeInfo node{.state = table.node[n].state.load(std::memory_order_acquire)};
    if (node.serves()) return false;
    some_died |= node.dead();
  }
  return some_died;
}

LocalPool::Condition LocalPool::inspect(const PoolFiles& files, Problem* problem) {
  for (const char* path : {files.path, files.durable_path}) {
    File file(path ? ::open(path, O_RDONLY | O_CLOEXEC) : -1);
    if (!file.open()) {
      if (path == nullptr || errno == ENOENT) continue;
      problem->write("cannot open %s: %s", path, strerror(errno));  // it is there: its copy is not asked
      return Condition::kDamaged;
    }
    const bool saved = path == files.durable_path;
    auto header = std::make_unique<PoolHeader>();
    Status ok = saved ? read_saved_header(file.fd(), path, header.get(), problem)
                      : read_header(file.fd(), path, header.get(), problem);
    if (ok) ok = check_header(*header, files.compatibility, path, problem);
    if (ok) ok = check_whole(file.fd(), *header, saved, path, problem);
    const bool clean = header->state.load() == PoolState::kClean;
    if (ok && (clean || !saved)) ok = check_parts(path, *header, saved, problem);
    if (!ok) return ok.error() == Errc::kIncompatible ? Condition::kForeign : Condition::kDamaged;
    if (clean) {
      if (saved || !files.durable_path || is_saved(*header, files.durable_path, problem)) return Condition::kClean;
      return Condition::kUnsaved;
    }
    if (saved) {  // other files of it may be the next one's already (pool.made-beside)
      problem->write("pool file %s was not closed cleanly: it was in use when the machine stopped", path);
      return Condition::kUnclean;
    }
    auto pool = open(files, problem);
    if (pool && !(*pool)->check_protocol(problem)) return Condition::kForeign;
    if (pool)
      return nobody_lives(MappedPool::of(**pool).table(), (*pool)->nodes_max()) ? Condition::kOrphaned
                                                                                : Condition::kInUse;
    if (pool.error() == Errc::kBusy) return Condition::kInUse;  // its server knows more
    return pool.error() == Errc::kFenced ? Condition::kUnclean : Condition::kDamaged;
  }
  problem->write("there is no pool %s", files.path);
  return Condition::kAbsent;
}

}  // namespace coherence

// The durable copy of a pool: written when the last node leaves, loaded when tmpfs has lost the pool.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "coherence/region/checksums.hpp"
#include "coherence/region/memory_file.hpp"
#include "coherence/region/pool_header.hpp"
#include "coherence/region/pool_lock.hpp"
#include "coherence/region/region_file.hpp"
#include "coherence/region/saved_file.hpp"
#include "coherence/region/since_save.hpp"
#include "coherence/transport/shm/local_pool.hpp"
#include "coherence/transport/shm/mapped_pool.hpp"

namespace coherence {
// Until memory node 0's file is replaced the durable copy says "in use" (pool.saves-never-mixed).  The pool in memory
// is clean, whatever becomes of the copy (pool.failed-save-harmless).
Status MappedPool::save(Problem* problem) {
  const uint32_t count = memory_nodes();
  for (uint32_t k = 0; k < count; k++) GCL_TRY(find_memory_node({uint8_t(k)}, problem));  // pool.mapped-when-needed
  for (uint32_t k = 0; k < count; k++) GCL_TRY(check_words_free(path(), k, problem));
  const uint64_t save = header().saves + 1;
  for (uint32_t k = 0; k < count; k++) header(k).saves = save;
  header().state.store(PoolState::kClean);
  GCL_TRY(replace_saved(1, problem));
  forget_since_save(durable_path());  // pool.journal-until-saved
  return {};
}

// The files of memory nodes from `from` on, and memory node 0's: first all of them beside the copy, then each in its
// place (pool.saved-beside).
Status MappedPool::replace_saved(uint32_t from, Problem* problem) {
  const LocalPool::NextCopy next(durable_path());
  const MemoryPath first(next.text, 0), unfinished(next.text, 0, true);
  const auto failed = [&](const char* what) {
    return problem->set(Errc::kSystem, "cannot %s pool file %s: %s", what, first.text, strerror(errno));
  };
  unlink_parts(next.text, kMemoryNodesMax);
  const uint32_t count = memory_nodes();
  Status ok;
  for (uint32_t k = from; ok && k < count; k++) ok = save_region(path(), k, MemoryPath(next.text, k).text, problem);
  if (ok) ok = save_region(path(), 0, unfinished.text, problem);
  if (ok && !sync_directory_of(first.text)) ok = failed("sync the directory of");
  if (ok && (rename(unfinished.text, first.text) != 0 || !sync_directory_of(first.text))) ok = failed("rename");
  if (!ok) unlink_parts(next.text, kMemoryNodesMax);
  return ok ? LocalPool::rename_parts(next.text, durable_path(), count, problem) : ok.error();
}

// pool.placed-before-used.  What else lies there counts for nothing, and must not when the pool has grown.
Status MappedPool::end_placing(Problem* problem) {
  if (durable_path() == nullptr) return {};
  const LocalPool::NextCopy next(durable_path());
  const auto unplaced = is_of_last_save(next.text, problem);
  if (!unplaced) return unplaced.error();  // perhaps it counts
  if (!*unplaced) {
    unlink(MemoryPath(next.text, 0).text);
    return {};
  }
  if (served_ >= 0 && memory_nodes() > 1)
    return problem->set(Errc::kUnreached, "the last copy of pool %s is not in its place at all memory nodes yet",
                        path());
  GCL_TRY(LocalPool::rename_parts(next.text, durable_path(), memory_nodes(), problem));
  forget_since_save(durable_path());  // pool.journal-until-saved
  return {};
}

// Memory node 0's file has its name when all are whole; one of another save is what is left of a pool that was made
// again, and one of more memory nodes what is left of a growth that memory has lost.
bool MappedPool::is_unplaced() const {
  Problem ignored;
  const auto unplaced = durable_path() != nullptr ? is_of_last_save(LocalPool::NextCopy(durable_path()).text, &ignored)
                                                  : Result<bool>(false);
  return unplaced.ok() && *unplaced;
}

// The number alone does not tell: a save that failed has none (pool.copy-marked-in-use).
bool MappedPool::is_copy_current() const {
  Problem ignored;
  if (durable_path() == nullptr) return false;
  const auto placed = is_of_last_save(durable_path(), &ignored);
  return (placed.ok() && *placed) || is_unplaced();
}

// kSystem: that cannot be told.
Result<bool> MappedPool::is_of_last_save(const char* copy, Problem* problem) const {
  const auto counts = std::make_unique<PoolHeader>();
  const MemoryPath path(copy, 0);
  const File file(::open(path.text, O_RDONLY | O_CLOEXEC));
  if (!file.open() && errno == ENOENT) return false;
  if (!file.open()) return problem->set(Errc::kSystem, "cannot open %s: %s", path.text, strerror(errno));
  const Status read = read_saved_header(file.fd(), copy, counts.get(), problem);
  if (read.error() == Errc::kSystem) return read.error();
  return read.ok() && counts->pool_id == header().pool_id && counts->saves == header().saves &&
         counts->memory_nodes.load() <= memory_nodes() && counts->state.load() == PoolState::kClean;
}

// --- by a process that serves memory node 0, and has no other file

Status MappedPool::write_copy(Problem* problem) {
  GCL_TRY(check_words_free(path(), 0, problem));
  if (durable_path() != nullptr) header().saves++;
  header().state.store(PoolState::kClean);
  if (durable_path() == nullptr) return {};
  const LocalPool::NextCopy next(durable_path());
  unlink(MemoryPath(next.text, 0).text);
  const MemoryPath unfinished(next.text, 0, true);
  const Status saved = save_region(path(), 0, unfinished.text, problem);
  if (!saved) drop_copy();
  return saved;
}

void MappedPool::drop_copy() noexcept {
  if (durable_path() != nullptr) unlink(MemoryPath(LocalPool::NextCopy(durable_path()).text, 0, true).text);
}

Status MappedPool::count_copy(Problem* problem) {
  if (durable_path() == nullptr) return {};
  const LocalPool::NextCopy next(durable_path());
  const MemoryPath first(next.text, 0), unfinished(next.text, 0, true);
  if (rename(unfinished.text, first.text) == 0 && sync_directory_of(first.text)) return {};
  return problem->set(Errc::kSystem, "cannot rename pool file %s: %s", unfinished.text, strerror(errno));
}

Status MappedPool::place_copy(Problem* problem) {
  if (durable_path() == nullptr) return {};
  GCL_TRY(LocalPool::rename_parts(LocalPool::NextCopy(durable_path()).text, durable_path(), 1, problem));
  forget_since_save(durable_path());  // pool.journal-until-saved
  return {};
}

Status LocalPool::save_again(const PoolFiles& files, Problem* problem) {
  PoolLock lock(files.path);
  if (!lock.held()) return problem->set(Errc::kSystem, "cannot lock %s.lock: %s", files.path, strerror(errno));
  auto pool = open_locked(files, problem);
  if (!pool) return pool.error();
  if ((*pool)->header().state.load() != PoolState::kClean)
    return problem->set(Errc::kBusy, "pool %s is in use", files.path);
  GCL_TRY((*pool)->end_placing(problem));  // or there might be no whole copy while it is replaced
  GCL_TRY((*pool)->replace_saved(1, problem));
  forget_since_save(files.durable_path);  // pool.journal-until-saved
  return {};
}

// Whether the durable copy is of the clean pool in memory, and whole.
bool LocalPool::is_saved(const PoolHeader& in_memory, const char* durable_path, Problem* problem) {
  auto saved = std::make_unique<PoolHeader>();
  File file(::open(durable_path, O_RDONLY | O_CLOEXEC));
  if (!file.open()) {
    problem->write("cannot open pool file %s: %s", durable_path, strerror(errno));
    return false;
  }
  Status ok = read_saved_header(file.fd(), durable_path, saved.get(), problem);
  if (ok) ok = check_whole(file.fd(), *saved, true, durable_path, problem);
  if (!ok) return false;
  if (saved->pool_id == in_memory.pool_id && saved->state.load() == PoolState::kClean &&
      saved->saves == in_memory.saves && saved->memory_nodes.load() == in_memory.memory_nodes.load())
    return check_parts(durable_path, *saved, true, problem).ok();
  problem->write("pool file %s is older than the pool: its last save failed", durable_path);
  return false;
}

// Memory node 0's file gets its name last (pool.memory-node-zero-decides).
Status LocalPool::load(const PoolFiles& files, const char* to_path, Which which, Parts parts, Problem* problem) {
  auto failed = [&](const char* what, const char* path) {
    return problem->set(errno == ENOSPC   ? Errc::kNoSpace
                        : errno == ENOENT ? Errc::kNotFound
                                          : Errc::kSystem,
                        "cannot %s %s: %s", what, path, strerror(errno));
  };
  auto first = std::make_unique<PoolHeader>();
  {
    File file(::open(files.durable_path, O_RDONLY | O_CLOEXEC));
    if (!file.open()) return failed("open pool file", files.durable_path);
    struct stat s;
    GCL_TRY(read_saved_header(file.fd(), files.durable_path, first.get(), problem));
    GCL_TRY(check_header(*first, files.compatibility, files.durable_path, problem));
    if (fstat(file.fd(), &s) != 0 || saved_bytes(first->bytes) != uint64_t(s.st_size))
      return problem->set(Errc::kCorrupt, "%s is not a whole pool file", files.durable_path);
  }
  if (which == Which::kClean && first->state.load() != PoolState::kClean)
    return problem->set(Errc::kFenced, "pool file %s was not closed cleanly: it was in use when the machine stopped",
                        files.durable_path);
  const uint32_t count = parts == Parts::kAll ? first->memory_nodes.load() : 1;
  if (parts == Parts::kAll) GCL_TRY(check_parts(files.durable_path, *first, true, problem));
  const auto damage = std::make_unique<Damage>();
  Status ok;
  for (uint32_t k = count; ok && k-- > 0;) {  // all of them, though one is bad: the extent is told
    const bool copied = damage->bad == 0;
    ok = load_region(files.durable_path, k, first->memory_bytes[k], to_path, damage.get(), problem);
    if (ok && k == 0 && damage->bad > 0) ok = damage->tell(files.durable_path, problem);
    if (ok && copied) ok = name_loaded(to_path, k, problem);
  }
  if (!ok) unlink_parts(to_path, count);
  return ok;
}

}  // namespace coherence

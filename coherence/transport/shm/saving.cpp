// The durable copy of a pool: written when the last node leaves, loaded when tmpfs has lost the pool.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "coherence/pool/checksums.hpp"
#include "coherence/pool/memory_file.hpp"
#include "coherence/pool/pool_header.hpp"
#include "coherence/pool/pool_lock.hpp"
#include "coherence/pool/saved_file.hpp"
#include "coherence/pool/since_save.hpp"
#include "coherence/transport/shm/mapped_pool.hpp"

namespace coherence {
namespace {

bool all_zero(const std::byte* p, uint64_t bytes) {
  return bytes == 0 || (p[0] == std::byte{0} && memcmp(p, p + 1, bytes - 1) == 0);
}

}  // namespace

// Writes one memory node's file to the disk, as a new one of that name.  What is zero stays a hole there; what was
// never touched in memory is not read, since a read would allocate memory.
Status MappedPool::save_part(uint32_t k, const MemoryPath& path, Problem* problem) {
  auto failed = [&](const char* what) {
    return problem->set(errno == ENOSPC ? Errc::kNoSpace : Errc::kSystem, "cannot %s pool file %s: %s", what, path.text,
                        strerror(errno));
  };
  File file(::open(path.text, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!file.open()) return failed("create");
  const uint64_t end = header(k).bytes;
  if (ftruncate(file.fd(), off_t(saved_bytes(end))) != 0) return failed("extend");
  const File memory(::open(MemoryPath(path_, k).text, O_RDONLY | O_CLOEXEC));
  if (!memory.open())
    return problem->set(Errc::kSystem, "cannot open pool %s: %s", MemoryPath(path_, k).text, strerror(errno));
  const auto checksums = std::make_unique<ChecksumWriter>(file.fd(), header(k));
  const auto chunk = std::make_unique<std::byte[]>(kFileChunk);  // through the mapping each 4 KB would be a page fault
  for (uint64_t at = 0; (at = next_written(memory.fd(), at, end)) < end; at += kFileChunk) {
    const uint64_t bytes = end - at < kFileChunk ? end - at : kFileChunk;
    if (!read_all(memory.fd(), chunk.get(), bytes, at))
      return problem->set(Errc::kSystem, "cannot read pool %s: %s", MemoryPath(path_, k).text, strerror(errno));
    if (all_zero(chunk.get(), bytes)) continue;
    if (!checksums->add(at, chunk.get(), bytes) || !write_all(file.fd(), chunk.get(), bytes, at))
      return failed("write");
  }
  if (!checksums->finish()) return failed("write");
  if (fsync(file.fd()) != 0) return failed("sync");
  return {};
}

// Until memory node 0's file is replaced the durable copy says "in use" (pool.saves-never-mixed).  The pool in memory
// is clean, whatever becomes of the copy (pool.failed-save-harmless).
Status MappedPool::save(Problem* problem) {
  const uint32_t count = memory_nodes();
  for (uint32_t k = 0; k < count; k++) GCL_TRY(find_memory_node({uint8_t(k)}, problem));  // pool.mapped-when-needed
  for (uint32_t k = 0; k < count; k++)                                                    // pool.words-never-saved
    for (uint64_t p = 0; p < places_[k].pages; p++)
      if (peek_latch(PageId::at(MemoryNodeId{uint8_t(k)}, p)) != LatchWord::free())
        return problem->set(Errc::kCorrupt, "page %llu of memory node %u is still owned: the pool is not saved",
                            static_cast<unsigned long long>(p), k);
  const uint64_t save = header().saves + 1;
  for (uint32_t k = 0; k < count; k++) header(k).saves = save;
  header().state.store(PoolState::kClean);
  GCL_TRY(replace_saved(1, problem));
  forget_since_save(durable_path_);  // pool.journal-until-saved
  return {};
}

// The files of memory nodes from `from` on, and memory node 0's: first all of them beside the copy, then each in its
// place (pool.saved-beside).
Status MappedPool::replace_saved(uint32_t from, Problem* problem) {
  const NextCopy next(durable_path_);
  const MemoryPath first(next.text, 0), unfinished(next.text, 0, true);
  const auto failed = [&](const char* what) {
    return problem->set(Errc::kSystem, "cannot %s pool file %s: %s", what, first.text, strerror(errno));
  };
  unlink_parts(next.text, kMemoryNodesMax);
  const uint32_t count = memory_nodes();
  Status ok;
  for (uint32_t k = from; ok && k < count; k++) ok = save_part(k, MemoryPath(next.text, k), problem);
  if (ok) ok = save_part(0, unfinished, problem);
  if (ok && !sync_directory_of(first.text)) ok = failed("sync the directory of");
  if (ok && (rename(unfinished.text, first.text) != 0 || !sync_directory_of(first.text))) ok = failed("rename");
  if (!ok) unlink_parts(next.text, kMemoryNodesMax);
  return ok ? rename_parts(next.text, durable_path_, count, problem) : ok.error();
}

Status Pool::save_again(const PoolFiles& files, Problem* problem) {
  PoolLock lock(files.path);
  if (!lock.held()) return problem->set(Errc::kSystem, "cannot lock %s.lock: %s", files.path, strerror(errno));
  auto pool = open_locked(files, problem);
  if (!pool) return pool.error();
  if ((*pool)->header().state.load() != PoolState::kClean)
    return problem->set(Errc::kBusy, "pool %s is in use", files.path);
  GCL_TRY((*pool)->replace_saved(1, problem));
  forget_since_save(files.durable_path);  // pool.journal-until-saved
  return {};
}

// Whether the durable copy is of the clean pool in memory, and whole.
bool Pool::is_saved(const PoolHeader& in_memory, const char* durable_path, Problem* problem) {
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
Status Pool::load(const PoolFiles& files, const char* to_path, Which which, Problem* problem) {
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
    GCL_TRY(check_header(*first, files.identity, files.durable_path, problem));
    if (fstat(file.fd(), &s) != 0 || saved_bytes(first->bytes) != uint64_t(s.st_size))
      return problem->set(Errc::kCorrupt, "%s is not a whole pool file", files.durable_path);
  }
  if (which == Which::kClean && first->state.load() != PoolState::kClean)
    return problem->set(Errc::kFenced, "pool file %s was not closed cleanly: it was in use when the machine stopped",
                        files.durable_path);
  GCL_TRY(check_parts(files.durable_path, *first, true, problem));
  const auto damage = std::make_unique<Damage>();
  Status ok;
  for (uint32_t k = first->memory_nodes; ok && k-- > 0;) {  // all of them, though one is bad: the extent is told
    MemoryPath saved(files.durable_path, k), unfinished(to_path, k, true), path(to_path, k);
    File from(::open(saved.text, O_RDONLY | O_CLOEXEC));
    if (!from.open()) {
      ok = failed("open pool file", saved.text);
      break;
    }
    int fd = -1;
    if (damage->bad == 0) ok = allocate_file(unfinished.text, first->memory_bytes[k], &fd, problem);
    File to(fd);
    if (ok) ok = read_saved(from.fd(), k, files.durable_path, to.fd(), damage.get(), problem);
    if (ok && k == 0 && damage->bad > 0) ok = damage->tell(files.durable_path, problem);
    if (ok && to.open() && rename(unfinished.text, path.text) != 0) ok = failed("rename", unfinished.text);
  }
  if (!ok) unlink_parts(to_path, first->memory_nodes);
  return ok;
}

// A file that is missing, or whose header is bad, hinders no look at the others.
Status Pool::verify_saved(const char* durable_path, Damage* damage, Problem* problem) {
  auto first = std::make_unique<PoolHeader>();
  uint32_t count = kMemoryNodesMax;
  Status ok;
  for (uint32_t k = 0; k < count; k++) {
    const MemoryPath path(durable_path, k);
    File file(::open(path.text, O_RDONLY | O_CLOEXEC));
    if (!file.open() && k > 0 && errno == ENOENT) continue;
    if (!file.open())
      return problem->set(errno == ENOENT ? Errc::kNotFound : Errc::kSystem, "cannot open pool file %s: %s", path.text,
                          strerror(errno));
    if (k == 0) {
      GCL_TRY(read_header(file.fd(), path.text, first.get(), problem));
      GCL_TRY(check_format(*first, path.text, problem));
      ok = check_saved_header(file.fd(), *first, 0, durable_path, problem);
      if (ok) ok = check_header(*first, nullptr, durable_path, problem);
      if (ok) count = first->memory_nodes.load();
      if (ok) ok = check_whole(file.fd(), *first, true, path.text, problem);
      if (ok) ok = check_parts(durable_path, *first, true, problem);
    }
    Problem later;
    Status read = read_saved(file.fd(), k, durable_path, -1, damage, ok ? problem : &later);
    if (ok && !read) ok = read;
  }
  return damage->bad > 0 ? damage->tell(durable_path, problem) : ok;
}

// Before the first node joins, the durable copy says that it is no longer the truth (pool.copy-marked-in-use).
Status MappedPool::mark_durable_in_use(Problem* problem) {
  if (!durable_path_[0]) return {};
  File file(::open(durable_path_, O_RDWR | O_CLOEXEC));
  const PoolState state = PoolState::kInUse;
  if (file.open() && pwrite(file.fd(), &state, sizeof state, offsetof(PoolHeader, state)) == ssize_t(sizeof state) &&
      fsync(file.fd()) == 0)
    return {};
  return problem->set(Errc::kSystem, "cannot mark pool file %s: %s", durable_path_, strerror(errno));
}

}  // namespace coherence

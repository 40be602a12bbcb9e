// A pool that memory has lost while it was in use is made again: its files, and how they take the lost one's place.
//
//   <pool>.restart, and those of the other memory nodes
#include <fcntl.h>
#include <sys/random.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "coherence/region/memory_file.hpp"
#include "coherence/region/node_table.hpp"
#include "coherence/region/pool_header.hpp"
#include "coherence/region/pool_journal.hpp"
#include "coherence/region/saved_file.hpp"
#include "coherence/region/since_save.hpp"
#include "coherence/transport/shm/local_pool.hpp"
#include "coherence/transport/shm/mapped_pool.hpp"

namespace coherence {
namespace {

// More saves than can have failed behind the copy's: entries of the journal may name them (pool.journal-until-saved).
constexpr uint64_t kSavesThatFailed = 1 << 20;

// pool.made-tells-itself.  Few enough for millions of restarts.
constexpr uint64_t kSavesApart = uint64_t{1} << 40;

Errc restart_error(const char* what, const char* path, Problem* problem) {
  return problem->set(Errc::kSystem, "cannot %s %s: %s", what, path, strerror(errno));
}

Status read_copy_header(const char* path, PoolHeader* header, Problem* problem) {
  const File file(::open(path, O_RDONLY | O_CLOEXEC));
  if (!file.open()) return errno == ENOENT ? Status(Errc::kNotFound) : Status(restart_error("open", path, problem));
  GCL_TRY(read_saved_header(file.fd(), path, header, problem));
  return check_whole(file.fd(), *header, true, path, problem);
}

}  // namespace

LocalPool::RestartPath::RestartPath(const char* path) { snprintf(text, sizeof text, "%s.restart", path); }
LocalPool::NextCopy::NextCopy(const char* durable_path) { snprintf(text, sizeof text, "%s.next", durable_path); }

Status LocalPool::rename_parts(const char* from, const char* to, uint32_t memory_nodes, Problem* problem) {
  for (uint32_t k = memory_nodes; k-- > 0;) {
    const MemoryPath old_name(from, k), new_name(to, k);
    if (rename(old_name.text, new_name.text) != 0 && errno != ENOENT)
      return restart_error("rename", old_name.text, problem);
    if (k == 1 && !sync_directory_of(to)) return restart_error("sync the directory of", to, problem);
  }
  return sync_directory_of(to) ? Status() : Status(restart_error("sync the directory of", to, problem));
}

// A next copy whose memory node 0's file is there is whole (pool.saved-beside), each file under one of its names.  If
// it is not, the lost pool's copy is, or somebody has to look.
Status LocalPool::adopt_next(const PoolFiles& files, const PoolHeader& lost, bool* adopted, Problem* problem) {
  *adopted = false;
  const NextCopy made(files.durable_path);
  auto header = std::make_unique<PoolHeader>();
  Status whole = read_copy_header(made.text, header.get(), problem);
  if (whole.error() == Errc::kNotFound) return {};
  if (whole.error() == Errc::kSystem) return whole;  // perhaps it counts
  if (whole &&
      (header->pool_id != lost.pool_id || header->saves <= lost.saves || header->state.load() != PoolState::kClean))
    return {};
  for (uint32_t k = 1; whole && k < header->memory_nodes; k++) {
    const bool renamed = access(MemoryPath(made.text, k).text, F_OK) != 0;
    whole = check_part(renamed ? files.durable_path : made.text, k, *header, true, problem);
  }
  Problem ignored;
  if (!whole && check_parts(files.durable_path, lost, true, &ignored)) return {};
  GCL_TRY(whole);
  GCL_TRY(rename_parts(made.text, files.durable_path, header->memory_nodes, problem));
  forget_since_save(files.durable_path);
  *adopted = true;
  return {};
}

Status LocalPool::begin_restart(const PoolFiles& files, bool* whole, Problem* problem) {
  auto lost = std::make_unique<PoolHeader>();
  const Status read = read_copy_header(files.durable_path, lost.get(), problem);
  if (read.error() == Errc::kNotFound) return problem->set(Errc::kNotFound, "there is no %s", files.durable_path);
  GCL_TRY(read);
  const RestartPath path(files.path);
  unlink_parts(path.text, kMemoryNodesMax);
  GCL_TRY(adopt_next(files, *lost, whole, problem));
  unlink_parts(NextCopy(files.durable_path).text, kMemoryNodesMax);
  if (*whole) return {};
  GCL_TRY(load(files, path.text, Which::kAny, Parts::kAll, problem));
  const File file(::open(path.text, O_RDWR | O_CLOEXEC));
  const PoolState clean = PoolState::kClean;
  if (!file.open() ||
      !write_all(file.fd(), reinterpret_cast<const std::byte*>(&clean), sizeof clean, offsetof(PoolHeader, state)))
    return restart_error("write", path.text, problem);
  return add_journaled(files, *lost, problem);
}

// Those that came while the pool was in use.
Status LocalPool::add_journaled(const PoolFiles& files, const PoolHeader& lost, Problem* problem) {
  uint64_t bytes[kMemoryNodesMax] = {};
  const auto note = [&](uint32_t kind, std::span<const std::byte> entry) -> Status {
    PoolJournal::MemoryNodeAdded added{};
    if (kind != PoolJournal::kMemoryNode) return {};
    if (entry.size() == sizeof added) memcpy(&added, entry.data(), sizeof added);
    if (entry.size() != sizeof added || added.number >= uint64_t(kMemoryNodesMax))
      return problem->set(Errc::kCorrupt, "the journal of %s has a memory node that makes no sense",
                          files.durable_path);
    bytes[added.number] = added.pages_bytes;
    return {};
  };
  GCL_TRY(PoolJournal::visit(files.durable_path, lost.pool_id, lost.saves, note, problem));
  const RestartPath path(files.path);
  for (uint32_t k = lost.memory_nodes.load(); k < uint32_t(kMemoryNodesMax) && bytes[k] != 0; k++) {
    const auto added = add_memory_node({.path = path.text, .compatibility = files.compatibility}, bytes[k], problem);
    if (!added) return added.error();
  }
  return {};
}

Status LocalPool::end_restart(const PoolFiles& files, uint64_t incarnations, Problem* problem) {
  const RestartPath path(files.path);
  const PoolFiles made{.path = path.text, .durable_path = files.durable_path, .compatibility = files.compatibility};
  uint32_t count;
  {
    auto pool = open_locked(made, problem);
    if (!pool) return pool.error();
    NodeTable& table = (*pool)->table();
    if (table.next_incarnation.load() < incarnations) table.next_incarnation.store(incarnations);
    uint64_t any;
    if (getrandom(&any, sizeof any, 0) != ssize_t(sizeof any)) return restart_error("number", path.text, problem);
    (*pool)->header().saves += kSavesThatFailed + any % kSavesApart;
    GCL_TRY((*pool)->save(problem));
    count = (*pool)->memory_nodes();
  }
  GCL_TRY(rename_parts(path.text, files.path, count, problem));
  char lock[sizeof path.text + 8];
  snprintf(lock, sizeof lock, "%s.lock", path.text);
  unlink(lock);
  return {};
}

}  // namespace coherence

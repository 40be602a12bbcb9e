#include "coherence/transport/shm/mapped_pool.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "coherence/base/os.hpp"
#include "coherence/base/verify.hpp"
#include "coherence/region/memory_file.hpp"
#include "coherence/region/node_table.hpp"
#include "coherence/region/pool_header.hpp"
#include "coherence/region/region_file.hpp"

namespace coherence {

MappedPool& MappedPool::of(Pool& pool) noexcept {
  auto* mapped = dynamic_cast<MappedPool*>(&pool);
  VERIFY(mapped != nullptr);
  return *mapped;
}

MappedPool::~MappedPool() {
  for (int k = 0; k < kMemoryNodesMax; k++)
    if (std::byte* base = mapped({uint8_t(k)})) munmap(base, bytes_[k]);
  if (served_ >= 0) ::close(served_);
}

Status MappedPool::check_protocol(Problem* problem) const {
  const uint32_t theirs = header().protocol.load(std::memory_order_relaxed);
  if (theirs == kProtocolVersion) return {};
  for (uint32_t n = 0; n < nodes_max(); n++)
    if (table_->node[n].state.load(std::memory_order_acquire) != MemberState::kAbsent)
      return problem->set(Errc::kIncompatible, "the nodes in pool %s have protocol version %u, this server has %u",
                          path(), theirs, kProtocolVersion);
  return {};
}

Status MappedPool::map_part(uint32_t k, Problem* problem) {
  const MemoryPath path(this->path(), k);
  File file(::open(path.text, O_RDWR | O_CLOEXEC));
  struct stat s;
  if (!file.open() || fstat(file.fd(), &s) != 0)
    return problem->set(Errc::kSystem, "cannot open pool %s: %s", path.text, strerror(errno));
  if (uint64_t(s.st_size) < kPoolHeaderBytes) return problem->set(Errc::kCorrupt, "%s is not a pool", path.text);
  const auto bytes = uint64_t(s.st_size);
  void* base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.fd(), 0);
  if (base == MAP_FAILED) return problem->set(Errc::kSystem, "cannot map pool %s: %s", path.text, strerror(errno));
  madvise(base, bytes, MADV_HUGEPAGE);  // where tmpfs permits
  const auto& found = *static_cast<PoolHeader*>(base);
  if (found.bytes > bytes) {
    munmap(base, bytes);
    return problem->set(Errc::kCorrupt, "pool %s is shorter than its header says", path.text);
  }
  bytes_[k] = bytes;
  set_places({uint8_t(k)}, found.places());
  set_base({uint8_t(k)}, static_cast<std::byte*>(base));
  return {};
}

Status MappedPool::map_first(Problem* problem) {
  GCL_TRY(map_part(0, problem));
  const PoolHeader& first = header();
  Facts facts{.nodes_max = first.nodes_max, .pool_id = first.pool_id, .region = {}};
  for (int i = 0; i < kRegionsMax; i++)
    facts.region[i] = {PoolAddress::at(MemoryNodeId{0}, first.region[i].offset), first.region[i].bytes};
  set_facts(facts);
  table_ = reinterpret_cast<NodeTable*>(mapped({0}) + first.region[kRegionNodeTable].offset);
  return {};
}

Status MappedPool::map_others(Problem* problem) {
  for (uint32_t k = 1; k < memory_nodes(); k++) GCL_TRY(find_memory_node({uint8_t(k)}, problem));
  return {};
}

// Maps a memory node (pool.mapped-when-needed).  The spinlock is for other threads of this process; a process of
// PostgreSQL has one.
Status MappedPool::find_memory_node(MemoryNodeId n, Problem* problem) {
  if (n.value >= memory_nodes()) return Errc::kNotFound;
  SpinGuard guard(late_spin_);
  if (mapped(n) != nullptr) return {};
  GCL_TRY(check_part(path(), n.value, header(), false, problem));
  return map_part(n.value, problem);
}

std::byte* MappedPool::map_late(MemoryNodeId n) noexcept {
  must_find(n);
  return mapped(n);
}

uint32_t MappedPool::memory_nodes() const {
  return header().memory_nodes.load(std::memory_order_acquire);  // pairs with add_memory_node()
}

uint64_t MappedPool::saves() const { return header().saves; }

Status MappedPool::mark_in_use(Problem* problem) {
  if (durable_path() == nullptr) return {};
  GCL_TRY(end_placing(problem));
  return mark_copy_in_use(durable_path(), problem);
}

Status MappedPool::close(Problem* problem) {
  if (durable_path() != nullptr) return save(problem);
  header().state.store(PoolState::kClean);
  return {};
}

LatchWord MappedPool::peek_latch(PageId p) {
  const PoolAddress at = latch_address(p);
  auto* word = reinterpret_cast<uint64_t*>(base(at.node()) + at.offset());
  return {std::atomic_ref(*word).load(std::memory_order_acquire)};
}

}  // namespace coherence

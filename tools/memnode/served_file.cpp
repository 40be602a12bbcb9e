#include "tools/memnode/served_file.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "coherence/base/verify.hpp"

namespace memnode {

using coherence::Errc;
using coherence::Problem;
using coherence::Result;
using coherence::Status;

Result<std::unique_ptr<ServedFile>> ServedFile::open(const char* path, Use use, Problem* problem) {
  std::unique_ptr<ServedFile> region(new ServedFile(::open(path, O_RDWR | O_CLOEXEC)));
  if (!region->file_.open()) return problem->set(Errc::kSystem, "cannot open %s: %s", path, strerror(errno));
  GCL_TRY(region->map(path, use, problem));
  return region;
}

Status ServedFile::map(const char* path, Use use, Problem* problem) {
  if (use == Use::kServe && flock(file_.fd(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return problem->set(Errc::kBusy, "another process serves %s", path);
    return problem->set(Errc::kSystem, "cannot lock %s: %s", path, strerror(errno));
  }
  const auto header = std::make_unique<coherence::PoolHeader>();
  GCL_TRY(coherence::read_header(file_.fd(), path, header.get(), problem));
  GCL_TRY(coherence::check_format(*header, path, problem));
  if (header->memory_node >= uint32_t(coherence::kMemoryNodesMax))
    return problem->set(Errc::kCorrupt, "%s is of memory node %u, which no pool has", path, header->memory_node);
  GCL_TRY(coherence::check_whole(file_.fd(), *header, false, path, problem));
  id_ = {uint8_t(header->memory_node)};
  pool_id_ = header->pool_id;
  void* const at = mmap(nullptr, header->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_.fd(), 0);
  if (at == MAP_FAILED) return problem->set(Errc::kSystem, "cannot map %s: %s", path, strerror(errno));
  madvise(at, header->bytes, MADV_HUGEPAGE);  // where tmpfs permits
  bytes_ = header->bytes;
  set_base(id_, static_cast<std::byte*>(at));
  return {};
}

ServedFile::~ServedFile() {
  if (bytes_ != 0) munmap(mapped(id_), bytes_);
}

// The server has looked whose a batch is.
std::byte* ServedFile::map_late(coherence::MemoryNodeId) noexcept {
  VERIFY(false);
  return nullptr;
}

}  // namespace memnode

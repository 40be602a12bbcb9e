#include "coherence/pool/pool.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>

#include "coherence/member/arena.hpp"
#include "coherence/member/node_table.hpp"
#include "coherence/pool/pool_header.hpp"
#include "coherence/pool/pool_lock.hpp"

namespace coherence {
namespace {

constexpr uint64_t kAlign = 65536;
uint64_t aligned(uint64_t n) { return (n + kAlign - 1) / kAlign * kAlign; }

uint64_t word_rows(uint64_t pages) { return (pages + 7) / 8 + 1; }  // eight words to a CPU line

// Lays the regions out one after another; returns the size of the file.
uint64_t lay_out(const PoolSpec& spec, PoolHeader* header) {
  uint64_t at = kPoolHeaderBytes;
  for (int i = 0; i < kRegionsMax; i++) {
    uint64_t bytes = spec.region_bytes[i];
    if (i == kRegionNodeTable) bytes = sizeof(NodeTable);
    if (i == kRegionLatchWords) bytes = word_rows(spec.region_bytes[kRegionPages] / kPageSize) * 64;
    header->region[i] = {at, bytes};
    at = aligned(at + bytes);
  }
  return at;
}

Status write_header(int fd, const PoolHeader& header, Problem* problem) {
  if (pwrite(fd, &header, sizeof header, 0) == ssize_t(sizeof header)) return {};
  return problem->set(Errc::kSystem, "cannot write the pool's header: %s", strerror(errno));
}

// The first line in which two identities differ, for the message.
void first_difference(const char* ours, const char* theirs, char* a, char* b, size_t bytes) {
  auto line = [&](const char* p, char* out) { snprintf(out, bytes, "%.*s", int(strcspn(p, "\n")), p); };
  while (*ours || *theirs) {
    line(ours, a);
    line(theirs, b);
    if (strcmp(a, b) != 0) return;
    auto next = [](const char* p) { return p + strcspn(p, "\n") + (p[strcspn(p, "\n")] == '\n'); };
    ours = next(ours);
    theirs = next(theirs);
  }
}

Status check_header(const PoolHeader& h, const PoolFiles& files, const char* path, Problem* problem) {
  if (h.magic != kPoolMagic) return problem->set(Errc::kCorrupt, "%s is not a pool", path);
  if (h.format_version != kPoolFormatVersion)
    return problem->set(Errc::kIncompatible, "pool %s has format version %u, this server reads version %u", path,
                        h.format_version, kPoolFormatVersion);
  if (h.block_size != kPageSize)
    return problem->set(Errc::kIncompatible, "pool %s has pages of %u bytes, this server has %u", path, h.block_size,
                        kPageSize);
  if (files.identity && *files.identity && strcmp(h.identity, files.identity) != 0) {
    char ours[160], theirs[160];
    first_difference(files.identity, h.identity, ours, theirs, sizeof ours);
    return problem->set(Errc::kIncompatible, "this server differs from pool %s: the pool has \"%s\", the server \"%s\"",
                        path, theirs, ours);
  }
  return {};
}

}  // namespace

Result<std::unique_ptr<Pool>> Pool::create(const PoolFiles& files, const PoolSpec& spec, Problem* problem) {
  PoolLock lock(files.path);
  if (!lock.held()) return problem->set(Errc::kSystem, "cannot lock %s.lock: %s", files.path, strerror(errno));
  if (access(files.path, F_OK) == 0) return problem->set(Errc::kExists, "pool %s exists", files.path);
  if (files.durable_path && access(files.durable_path, F_OK) == 0)
    return problem->set(Errc::kExists, "pool file %s exists", files.durable_path);
  if (spec.nodes_max == 0 || spec.nodes_max > uint32_t(kNodesMax) || strlen(spec.identity) >= kIdentityMax)
    return problem->set(Errc::kIncompatible, "a pool has 1 to %d nodes, and an identity shorter than %u bytes",
                        kNodesMax, kIdentityMax);

  auto header = std::make_unique<PoolHeader>();
  header->magic = kPoolMagic;
  header->format_version = kPoolFormatVersion;
  header->block_size = kPageSize;
  header->nodes_max = spec.nodes_max;
  header->state = PoolState::kClean;
  if (getrandom(&header->pool_id, sizeof header->pool_id, 0) < 0) return Errc::kSystem;
  header->bytes = lay_out(spec, header.get());
  memcpy(header->identity, spec.identity, strlen(spec.identity));

  char temporary[560];
  snprintf(temporary, sizeof temporary, "%s.new", files.path);
  int fd = ::open(temporary, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0) return problem->set(Errc::kSystem, "cannot create %s: %s", temporary, strerror(errno));
  Status ok;
  if (int error = posix_fallocate(fd, 0, off_t(header->bytes)); error != 0)  // P1
    ok = problem->set(error == ENOSPC ? Errc::kNoSpace : Errc::kSystem, "cannot allocate %.0f MB for pool %s: %s",
                      double(header->bytes) / 1048576, files.path, strerror(error));
  if (ok) ok = write_header(fd, *header, problem);
  if (ok && rename(temporary, files.path) != 0)
    ok = problem->set(Errc::kSystem, "cannot rename %s: %s", temporary, strerror(errno));
  std::unique_ptr<Pool> pool(new Pool);
  snprintf(pool->path_, sizeof pool->path_, "%s", files.path);
  if (files.durable_path) snprintf(pool->durable_path_, sizeof pool->durable_path_, "%s", files.durable_path);
  if (ok) ok = pool->map(fd, problem);
  close(fd);
  if (ok && files.durable_path) ok = pool->save(problem);
  if (!ok) {
    unlink(temporary);
    unlink(files.path);
    return ok.error();
  }
  return pool;
}

Status Pool::map(int fd, Problem* problem) {
  struct stat s;
  if (fstat(fd, &s) != 0) return problem->set(Errc::kSystem, "cannot stat pool %s: %s", path_, strerror(errno));
  if (uint64_t(s.st_size) < kPoolHeaderBytes) return problem->set(Errc::kCorrupt, "%s is not a pool", path_);
  bytes_ = uint64_t(s.st_size);
  void* base = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (base == MAP_FAILED) return problem->set(Errc::kSystem, "cannot map pool %s: %s", path_, strerror(errno));
  base_ = static_cast<std::byte*>(base);
  madvise(base, bytes_, MADV_HUGEPAGE);  // where tmpfs permits
  auto* header = reinterpret_cast<PoolHeader*>(base_);
  if (header->bytes > bytes_) return problem->set(Errc::kCorrupt, "pool %s is shorter than its header says", path_);
  table_ = reinterpret_cast<NodeTable*>(base_ + header->region[kRegionNodeTable].offset);
  words_at_ = region(kRegionLatchWords).at;
  pages_at_ = region(kRegionPages).at;
  word_rows_ = word_rows(pages());
  return {};
}

Result<std::unique_ptr<Pool>> Pool::open(const PoolFiles& files, Problem* problem) {
  PoolLock lock(files.path);
  if (!lock.held()) return problem->set(Errc::kSystem, "cannot lock %s.lock: %s", files.path, strerror(errno));
  int fd = ::open(files.path, O_RDWR | O_CLOEXEC);
  if (fd < 0 && errno == ENOENT && files.durable_path) {
    GCL_TRY(load(files, problem));
    fd = ::open(files.path, O_RDWR | O_CLOEXEC);
  }
  if (fd < 0)
    return problem->set(errno == ENOENT ? Errc::kNotFound : Errc::kSystem, "cannot open pool %s: %s", files.path,
                        strerror(errno));
  std::unique_ptr<Pool> pool(new Pool);
  snprintf(pool->path_, sizeof pool->path_, "%s", files.path);
  if (files.durable_path) snprintf(pool->durable_path_, sizeof pool->durable_path_, "%s", files.durable_path);
  auto header = std::make_unique<PoolHeader>();
  Status ok;
  if (pread(fd, header.get(), sizeof *header, 0) != ssize_t(sizeof *header))
    ok = problem->set(Errc::kCorrupt, "%s is not a pool", files.path);
  if (ok) ok = check_header(*header, files, files.path, problem);
  if (ok) ok = pool->map(fd, problem);
  close(fd);
  if (!ok) return ok.error();
  fence_if_somebody_died(*pool);
  if (pool->table_->fence.load(std::memory_order_acquire) != 0)  // pairs with fence_pool()
    return problem->set(Errc::kFenced, "pool %s was not closed cleanly: %s", files.path, fence_reason(*pool));
  return pool;
}

Pool::Condition Pool::inspect(const PoolFiles& files, Problem* problem) {
  for (const char* path : {files.path, files.durable_path}) {
    int fd = path ? ::open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0) continue;
    auto header = std::make_unique<PoolHeader>();
    bool whole = pread(fd, header.get(), sizeof *header, 0) == ssize_t(sizeof *header);
    close(fd);
    if (!whole || !check_header(*header, files, path, problem)) {
      if (!whole) problem->write("%s is not a pool", path);
      return Condition::kUnclean;
    }
    if (header->state.load() == PoolState::kClean) return Condition::kClean;
    if (path == files.durable_path) {
      problem->write("pool file %s was not closed cleanly: it was in use when the machine stopped", path);
      return Condition::kUnclean;
    }
    auto pool = open(files, problem);
    return pool.ok() ? Condition::kInUse : Condition::kUnclean;
  }
  problem->write("there is no pool %s", files.path);
  return Condition::kAbsent;
}

Pool::~Pool() {
  if (base_) munmap(base_, bytes_);
}

RegionExtent Pool::region(int index) const {
  auto& r = reinterpret_cast<const PoolHeader*>(base_)->region[index];
  return {PoolAddress::at(MemoryNodeId{0}, r.offset), r.bytes};
}
uint64_t Pool::pages() const { return region(kRegionPages).bytes / kPageSize; }
uint32_t Pool::nodes_max() const { return reinterpret_cast<const PoolHeader*>(base_)->nodes_max; }
uint64_t Pool::pool_id() const { return reinterpret_cast<const PoolHeader*>(base_)->pool_id; }

LatchWord Pool::peek_latch(PageId p) const {
  auto* word = reinterpret_cast<uint64_t*>(at(latch_address(p)));
  return {std::atomic_ref(*word).load(std::memory_order_acquire)};
}

}  // namespace coherence

// A pool grows: a memory node is added while nodes work with the others.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "coherence/pool/memory_file.hpp"
#include "coherence/pool/pool.hpp"
#include "coherence/pool/pool_header.hpp"
#include "coherence/pool/pool_lock.hpp"

namespace coherence {
namespace {

// The file of a memory node that has no number yet.  It is filled while nodes join and leave: the pool's lock file is
// not held for as long as that takes.  Whoever has it locked under its name is the one who adds.
class GrowingFile {
 public:
  explicit GrowingFile(const char* pool) {
    snprintf(path_, sizeof path_, "%s.growing", pool);
    fd_ = open(path_, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd_ >= 0) busy_ = flock(fd_, LOCK_EX | LOCK_NB) != 0 || !is_named();
  }
  ~GrowingFile() {
    if (fd_ < 0) return;
    if (!busy_ && is_named()) unlink(path_);
    close(fd_);
  }
  GrowingFile(const GrowingFile&) = delete;
  int fd() const { return fd_; }
  bool busy() const { return busy_; }
  const char* path() const { return path_; }

 private:
  // Else it has become a memory node since we opened it.
  bool is_named() const {
    struct stat ours, named;
    return fstat(fd_, &ours) == 0 && stat(path_, &named) == 0 && ours.st_ino == named.st_ino;
  }
  char path_[560];
  int fd_ = -1;
  bool busy_ = false;
};

// Whoever may use the pool's files may use this one.
bool share_as(int fd, const char* path) {
  struct stat wanted, is;
  if (stat(path, &wanted) != 0 || fstat(fd, &is) != 0) return false;
  if ((wanted.st_uid != is.st_uid || wanted.st_gid != is.st_gid) && fchown(fd, wanted.st_uid, wanted.st_gid) != 0)
    return false;
  return fchmod(fd, wanted.st_mode & 07777) == 0;
}

Errc full(const char* path, Problem* problem) {
  return problem->set(Errc::kTooLarge, "pool %s has %d memory nodes: there is no room for another", path,
                      kMemoryNodesMax);
}

}  // namespace

Result<MemoryNodeId> Pool::add_memory_node(const PoolFiles& files, uint64_t pages_bytes, Problem* problem) {
  {
    auto pool = open(files, problem);
    if (!pool) return pool.error();
    if ((*pool)->memory_nodes() == uint32_t(kMemoryNodesMax)) return full(files.path, problem);
  }
  GrowingFile file(files.path);
  auto failed = [&](const char* what) {
    return problem->set(errno == ENOSPC ? Errc::kNoSpace : Errc::kSystem, "cannot %s %s: %s", what, file.path(),
                        strerror(errno));
  };
  if (file.fd() < 0) return failed("create");
  if (file.busy()) return problem->set(Errc::kBusy, "a memory node is being added to pool %s", files.path);
  PoolSpec spec;
  spec.further_pages_bytes = pages_bytes;
  auto header = std::make_unique<PoolHeader>();
  lay_out(spec, 1, header.get());  // whichever number it gets, it is as large
  if (ftruncate(file.fd(), 0) != 0) return failed("empty");
  if (int error = posix_fallocate(file.fd(), 0, off_t(header->bytes)); error != 0)  // P1
    return problem->set(error == ENOSPC ? Errc::kNoSpace : Errc::kSystem, "cannot allocate %.0f MB for %s: %s",
                        double(header->bytes) / 1048576, file.path(), strerror(error));
  if (!share_as(file.fd(), files.path)) return failed("give the pool's owner");

  PoolLock lock(files.path);  // nobody joins or leaves from here on, and what was true before is asked again
  if (!lock.held()) return problem->set(Errc::kSystem, "cannot lock %s.lock: %s", files.path, strerror(errno));
  auto opened = open_locked(files, problem);
  if (!opened) return opened.error();
  Pool& pool = **opened;
  PoolHeader& first = pool.header();
  const uint32_t number = pool.memory_nodes();
  if (number == uint32_t(kMemoryNodesMax)) return full(files.path, problem);
  memcpy(static_cast<void*>(header.get()), &first, sizeof first);
  lay_out(spec, number, header.get());
  GCL_TRY(finish_file(file.fd(), file.path(), MemoryPath(files.path, number).text, *header, problem));
  first.memory_bytes[number] = header->bytes;
  first.memory_nodes.store(number + 1, std::memory_order_release);  // pairs with memory_nodes() (P9)
  // The copy is whole at every moment: until memory node 0's file is replaced, it is the one without the new one's.
  if (first.state.load() == PoolState::kClean && files.durable_path) {
    GCL_TRY(pool.reach_late(MemoryNodeId{uint8_t(number)}, problem));
    GCL_TRY(pool.replace_saved(number, problem));
  }
  return MemoryNodeId{uint8_t(number)};
}

}  // namespace coherence

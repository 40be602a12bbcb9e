// A pool grows: a memory node is added while nodes work with the others.
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "coherence/region/memory_file.hpp"
#include "coherence/region/pool_header.hpp"
#include "coherence/region/pool_journal.hpp"
#include "coherence/region/pool_lock.hpp"
#include "coherence/region/region_file.hpp"
#include "coherence/region/since_save.hpp"
#include "coherence/transport/shm/local_pool.hpp"
#include "coherence/transport/shm/mapped_pool.hpp"

namespace coherence {
namespace {

// The file of a memory node that has no number yet.  It is filled while nodes join and leave: the pool's lock file is
// not held for as long as that takes.  The process that has it locked under its name is the one that adds
// (pool.counted-last).
class GrowingFile {
 public:
  explicit GrowingFile(const char* pool) { snprintf(path_, sizeof path_, "%s.growing", pool); }
  ~GrowingFile() {
    if (fd_ < 0) return;
    if (ours_ && is_named()) unlink(path_);
    close(fd_);
  }
  GrowingFile(const GrowingFile&) = delete;
  // Opens it, or makes it (`flags` is O_CREAT); whether it is ours then.  REQUIRES: the pool's lock file held, so that
  // no process sees one that is made and not locked yet.
  bool take(int flags) {
    fd_ = open(path_, O_RDWR | O_CLOEXEC | flags, 0600);
    ours_ = fd_ >= 0 && flock(fd_, LOCK_EX | LOCK_NB) == 0 && is_named();
    return ours_;
  }
  Status fill(uint64_t bytes, Problem* problem) {
    if (ftruncate(fd_, 0) != 0) return failed("empty", problem);
    if (int error = posix_fallocate(fd_, 0, off_t(bytes)); error != 0)  // pool.allocated-in-full
      return problem->set(error == ENOSPC ? Errc::kNoSpace : Errc::kSystem, "cannot allocate %.0f MB for %s: %s",
                          double(bytes) / 1048576, path_, strerror(error));
    return {};
  }
  Errc failed(const char* what, Problem* problem) const {
    return problem->set(errno == ENOSPC ? Errc::kNoSpace : Errc::kSystem, "cannot %s %s: %s", what, path_,
                        strerror(errno));
  }
  int fd() const { return fd_; }
  const char* path() const { return path_; }

 private:
  // Else the process that had it has given it up.
  bool is_named() const {
    struct stat ours, named;
    return fstat(fd_, &ours) == 0 && stat(path_, &named) == 0 && ours.st_ino == named.st_ino;
  }
  char path_[560];
  int fd_ = -1;
  bool ours_ = false;
};

// Gives the file the owner and the mode of the pool's.
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

// Removes what a process that died while adding left behind (pool.counted-last).
void MappedPool::remove_uncounted() const {
  unlink(MemoryPath(path(), memory_nodes()).text);
  GrowingFile left(path());
  (void)left.take(0);  // locked by no process: it goes with this variable
}

Status MappedPool::count_memory_node(uint32_t number, uint64_t bytes, uint64_t pages_bytes,
                                     PoolJournal::Patience patience, Problem* problem) {
  if (durable_path() != nullptr) {  // pool.journal-before-effect; if a save follows, it may fail
    GCL_TRY(end_placing(problem));  // else what is not in its place would lack this memory node
    const PoolJournal::MemoryNodeAdded entry{number, pages_bytes};
    const auto journal = PoolJournal::open(*this, patience, problem);
    if (!journal) return journal.error();
    GCL_TRY((*journal)->append(PoolJournal::kMemoryNode, std::as_bytes(std::span(&entry, 1)), problem));
  }
  header().memory_bytes[number] = bytes;
  header().memory_nodes.store(number + 1, std::memory_order_release);  // pairs with memory_nodes() (pool.counted-last)
  return {};
}

Result<AddedMemoryNode> LocalPool::add_memory_node(const PoolFiles& files, uint64_t pages_bytes, Problem* problem) {
  GrowingFile file(files.path);
  {
    PoolLock lock(files.path);
    if (!lock.held()) return problem->set(Errc::kSystem, "cannot lock %s.lock: %s", files.path, strerror(errno));
    auto pool = open_locked(files, problem);
    if (!pool) return pool.error();
    if ((*pool)->memory_nodes() == uint32_t(kMemoryNodesMax)) return full(files.path, problem);
    if (!file.take(O_CREAT)) {
      if (file.fd() < 0) return file.failed("create", problem);
      return problem->set(Errc::kBusy, "a memory node is being added to pool %s", files.path);
    }
  }
  PoolSpec spec;
  spec.further_pages_bytes = pages_bytes;
  auto header = std::make_unique<PoolHeader>();
  lay_out_region(spec, 1, header.get());  // whichever number it gets, it is as large
  GCL_TRY(file.fill(header->bytes, problem));
  if (!share_as(file.fd(), files.path)) return file.failed("give the pool's owner", problem);

  PoolLock lock(files.path);  // no node joins or leaves from here on; what was true before is asked again
  if (!lock.held()) return problem->set(Errc::kSystem, "cannot lock %s.lock: %s", files.path, strerror(errno));
  auto opened = open_locked(files, problem);
  if (!opened) return opened.error();
  MappedPool& pool = **opened;
  PoolHeader& first = pool.header();
  const uint32_t number = pool.memory_nodes();
  if (number == uint32_t(kMemoryNodesMax)) return full(files.path, problem);
  const bool to_be_saved = first.state.load() == PoolState::kClean && files.durable_path;
  Problem ignored;
  const bool was_saved = to_be_saved && is_saved(first, files.durable_path, &ignored);
  memcpy(static_cast<void*>(header.get()), &first, sizeof first);
  lay_out_region(spec, number, header.get());
  GCL_TRY(name_region(file.fd(), file.path(), files.path, *header, problem));
  GCL_TRY(pool.count_memory_node(number, header->bytes, pages_bytes, PoolJournal::kWait, problem));
  AddedMemoryNode added{MemoryNodeId{uint8_t(number)}, true};
  if (to_be_saved) {  // pool.grown-copy-completed
    Status saved = pool.find_memory_node(added.memory_node, problem);
    if (saved) saved = pool.replace_saved(was_saved ? number : 1, problem);
    if (saved) forget_since_save(files.durable_path);  // pool.journal-until-saved
    added.saved = saved.ok();
  }
  return added;
}

}  // namespace coherence

#include "coherence/region/pool_journal.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <vector>

#include "coherence/base/crc32c.hpp"
#include "coherence/pool/pool.hpp"

namespace coherence {
namespace {

struct EntryHead {
  static constexpr uint64_t kMagic = 0x314c4e52'554f4a47;  // "GJOURNL1"
  uint64_t magic;
  uint64_t pool_id;
  uint64_t saves;
  uint64_t bytes;
  uint32_t kind;
  uint32_t checksum;  // of where it lies in the file, this head, with 0 here, and the bytes
};
static_assert(sizeof(EntryHead) == 40);

// Another entry's bytes may have one in them: it is none there.
uint32_t checksum_of(uint64_t at, EntryHead head, std::span<const std::byte> bytes) {
  head.checksum = 0;
  return crc32c(crc32c(crc32c(0, &at, sizeof at), &head, sizeof head), bytes.data(), bytes.size());
}

Errc journal_error(const char* what, const char* path, Problem* problem) {
  return problem->set(errno == ENOSPC || errno == EDQUOT ? Errc::kNoSpace : Errc::kSystem, "cannot %s %s: %s", what,
                      path, strerror(errno));
}

bool has_name(int fd, const char* path) {
  struct stat ours, named;
  return fstat(fd, &ours) == 0 && stat(path, &named) == 0 && ours.st_dev == named.st_dev && ours.st_ino == named.st_ino;
}

// A walk over the entries of a file.
class Entries {
 public:
  Entries(int fd, const char* path) : fd_(fd), path_(path) {}
  // kSystem.
  Status begin(Problem* problem) {
    struct stat s;
    if (fstat(fd_, &s) != 0) return journal_error("stat", path_, problem);
    size_ = uint64_t(s.st_size);
    return {};
  }
  // Whether there is another sound entry.  kSystem.
  Result<bool> next(Problem* problem) {
    at_ = end_;
    if (size_ - at_ < sizeof head_) return false;
    if (!read_all(fd_, reinterpret_cast<std::byte*>(&head_), sizeof head_, at_))
      return journal_error("read", path_, problem);
    if (head_.magic != EntryHead::kMagic || head_.bytes > size_ - at_ - sizeof head_) return false;
    bytes_.resize(head_.bytes);
    if (!read_all(fd_, bytes_.data(), head_.bytes, at_ + sizeof head_)) return journal_error("read", path_, problem);
    if (checksum_of(at_, head_, bytes_) != head_.checksum) return false;
    end_ = at_ + sizeof head_ + head_.bytes;
    return true;
  }
  // Whether behind the last sound entry lies one that is, so that this is no torn end.
  Result<bool> goes_on(Problem* problem) {
    constexpr uint64_t kChunk = 1 << 20;
    std::vector<std::byte> chunk(kChunk);
    const uint64_t magic = EntryHead::kMagic;
    for (uint64_t at = end_ + 1; at + sizeof head_ <= size_; at += kChunk - sizeof magic) {
      const uint64_t bytes = std::min(kChunk, size_ - at);
      if (!read_all(fd_, chunk.data(), bytes, at)) return journal_error("read", path_, problem);
      for (uint64_t i = 0; i + sizeof magic <= bytes; ++i) {
        if (memcmp(&chunk[i], &magic, sizeof magic) != 0) continue;
        Entries from(*this, at + i);
        auto sound = from.next(problem);
        if (!sound || *sound) return sound;
      }
    }
    return false;
  }
  const EntryHead& head() const { return head_; }
  std::span<const std::byte> bytes() const { return bytes_; }
  uint64_t end() const { return end_; }

 private:
  Entries(const Entries& other, uint64_t end) : fd_(other.fd_), path_(other.path_), size_(other.size_), end_(end) {}

  const int fd_;
  const char* const path_;
  uint64_t size_ = 0, at_ = 0, end_ = 0;
  EntryHead head_ = {};
  std::vector<std::byte> bytes_;
};

// Visits the entries that count (PoolJournal::visit).
template <class Each>
Status walk(int fd, const char* path, uint64_t pool_id, uint64_t saves, const Each& each, Problem* problem) {
  Entries entries(fd, path);
  GCL_TRY(entries.begin(problem));
  for (;;) {
    const auto more = entries.next(problem);
    if (!more) return more.error();
    if (!*more) break;
    if (entries.head().pool_id == pool_id && entries.head().saves >= saves)
      GCL_TRY(each(entries.head(), entries.bytes()));
  }
  const auto damaged = entries.goes_on(problem);
  if (!damaged) return damaged.error();
  if (*damaged)
    return problem->set(Errc::kCorrupt, "%s is damaged at byte %llu", path, (unsigned long long)entries.end());
  return {};
}

// The head goes last: an entry of which it is missing is none.
bool write_entry(int fd, uint64_t at, EntryHead* head, std::span<const std::byte> bytes) {
  head->checksum = checksum_of(at, *head, bytes);
  return write_all(fd, bytes.data(), bytes.size(), at + sizeof *head) &&
         write_all(fd, reinterpret_cast<const std::byte*>(head), sizeof *head, at);
}

}  // namespace

PoolJournal::PoolJournal(int fd, const char* durable_path, const Pool& pool)
    : path_(durable_path, BesideCopy::kJournal), file_(fd), pool_id_(pool.pool_id()), saves_(pool.saves()) {}

// A save may have removed the file while this process waited for it.
Result<std::unique_ptr<PoolJournal>> PoolJournal::open(Pool& pool, Patience patience, Problem* problem) {
  const BesideCopy path(pool.durable_path(), BesideCopy::kJournal);
  for (;;) {
    std::unique_ptr<PoolJournal> journal(
        new PoolJournal(::open(path.text, O_RDWR | O_CREAT | O_CLOEXEC, 0600), pool.durable_path(), pool));
    if (!journal->file_.open()) return journal_error("open", path.text, problem);
    while (flock(journal->file_.fd(), LOCK_EX | patience) != 0) {
      if (errno == EWOULDBLOCK) return problem->set(Errc::kBusy, "%s is locked", path.text);
      if (errno != EINTR) return journal_error("lock", path.text, problem);
    }
    if (!has_name(journal->file_.fd(), path.text)) continue;
    GCL_TRY(journal->find_end(problem));
    // The process that made the file, or gave it its name (rewrite()), may have died, or been overtaken by this one,
    // before the name was on the disk.
    if (!sync_directory_of(path.text)) return journal_error("sync the directory of", path.text, problem);
    return journal;
  }
}

Status PoolJournal::find_end(Problem* problem) {
  Entries entries(file_.fd(), path_.text);
  GCL_TRY(entries.begin(problem));
  for (;;) {
    const auto more = entries.next(problem);
    if (!more) return more.error();
    if (!*more) break;
  }
  end_ = entries.end();
  const auto damaged = entries.goes_on(problem);
  if (!damaged) return damaged.error();
  if (*damaged) return problem->set(Errc::kCorrupt, "%s is damaged at byte %llu", path_.text, (unsigned long long)end_);
  return {};
}

Status PoolJournal::append(uint32_t kind, std::span<const std::byte> bytes, Problem* problem) {
  EntryHead head{EntryHead::kMagic, pool_id_, saves_, bytes.size(), kind, 0};
  const int fd = file_.fd();
  if (ftruncate(fd, off_t(end_)) == 0 && write_entry(fd, end_, &head, bytes) && fsync(fd) == 0) {
    end_ += sizeof head + bytes.size();
    return {};
  }
  const Errc error = journal_error("write", path_.text, problem);
  (void)!ftruncate(fd, off_t(end_));
  return error;
}

// A process that waits for the lock meanwhile finds that the file has lost its name (open()).
Status PoolJournal::rewrite(const char* durable_path, uint64_t pool_id, uint64_t saves, const Keep& keep,
                            Problem* problem) {
  const BesideCopy path(durable_path, BesideCopy::kJournal);
  const File file(::open(path.text, O_RDWR | O_CLOEXEC));
  if (!file.open()) return errno == ENOENT ? Status() : Status(journal_error("open", path.text, problem));
  if (flock(file.fd(), LOCK_EX | LOCK_NB) != 0 || !has_name(file.fd(), path.text))
    return problem->set(Errc::kBusy, "%s is locked", path.text);
  char next[sizeof path.text + 8];
  snprintf(next, sizeof next, "%s.next", path.text);
  const File to(::open(next, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!to.open()) return journal_error("create", next, problem);
  uint64_t end = 0;
  const auto copy = [&](EntryHead head, std::span<const std::byte> was) -> Status {
    std::vector<std::byte> bytes(was.begin(), was.end());
    keep(&head.kind, &bytes);
    head.bytes = bytes.size();
    if (!write_entry(to.fd(), end, &head, bytes)) return journal_error("write", next, problem);
    end += sizeof head + bytes.size();
    return {};
  };
  Status done = walk(file.fd(), path.text, pool_id, saves, copy, problem);
  if (done && fsync(to.fd()) != 0) done = journal_error("sync", next, problem);
  if (done && rename(next, path.text) != 0) done = journal_error("rename", next, problem);
  if (!done) {
    unlink(next);
    return done;
  }
  return sync_directory_of(path.text) ? Status() : Status(journal_error("sync the directory of", path.text, problem));
}

Status PoolJournal::visit(const char* durable_path, uint64_t pool_id, uint64_t saves, const Visit& visit,
                          Problem* problem) {
  const BesideCopy path(durable_path, BesideCopy::kJournal);
  const File file(::open(path.text, O_RDONLY | O_CLOEXEC));
  if (!file.open()) return errno == ENOENT ? Status() : Status(journal_error("open", path.text, problem));
  return walk(
      file.fd(), path.text, pool_id, saves,
      [&](const EntryHead& head, std::span<const std::byte> bytes) { return visit(head.kind, bytes); }, problem);
}

}  // namespace coherence

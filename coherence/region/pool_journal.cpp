#include "coherence/region/pool_journal.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <vector>

#include "coherence/base/crc32c.hpp"
#include "coherence/base/verify.hpp"
#include "coherence/pool/pool.hpp"

namespace coherence {
namespace {

struct EntryHead {
  static constexpr uint64_t kMagic = 0x314c4e52'554f4a47;  // "GJOURNL1", whose last character is the version
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

// The version that an entry says of itself, if that is a later one; 0: it is none.
char later_version(uint64_t magic) {
  constexpr int kVersionAt = 56;
  constexpr uint64_t kName = (uint64_t{1} << kVersionAt) - 1;
  const auto version = char(magic >> kVersionAt);
  const bool named = (magic & kName) == (EntryHead::kMagic & kName);
  return named && version > '1' && version <= '9' ? version : '\0';
}

// kSystem.
Result<bool> has_name(int fd, const char* path, Problem* problem) {
  struct stat ours, named;
  if (fstat(fd, &ours) != 0) return journal_error("stat", path, problem);
  if (stat(path, &named) == 0) return ours.st_dev == named.st_dev && ours.st_ino == named.st_ino;
  if (errno == ENOENT) return false;
  return journal_error("stat", path, problem);
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
  // Whether there is another sound entry.  kSystem, kIncompatible (pool.journal-version-refused).
  Result<bool> next(Problem* problem) {
    at_ = end_;
    if (size_ - at_ < sizeof head_) return false;
    if (!read_all(fd_, reinterpret_cast<std::byte*>(&head_), sizeof head_, at_))
      return journal_error("read", path_, problem);
    if (const char version = later_version(head_.magic))
      return problem->set(Errc::kIncompatible,
                          "%s has an entry of version %c at byte %llu, and version 1 is read here; a later version of "
                          "gcl wrote it: use that one",
                          path_, version, (unsigned long long)at_);
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

// A file that is to take the journal's place.
class NextFile {
 public:
  explicit NextFile(const BesideCopy& path)
      : path_(path.text), file_((make_name(), ::open(name_, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600))) {}
  bool open() const { return file_.open(); }
  int fd() const { return file_.fd(); }
  Errc failed(const char* what, Problem* problem) const { return journal_error(what, name_, problem); }
  // Durable when it returns, and the journal's file from then on.  After an error it may be that, too.
  Status take_place(Problem* problem) const {
    if (fsync(fd()) != 0) return failed("sync", problem);
    if (rename(name_, path_) != 0) return failed("rename", problem);
    return sync_directory_of(path_) ? Status() : Status(journal_error("sync the directory of", path_, problem));
  }
  void remove() const { unlink(name_); }

 private:
  void make_name() { snprintf(name_, sizeof name_, "%s.next", path_); }

  const char* const path_;
  char name_[sizeof BesideCopy::text + 8];
  const File file_;
};

bool copy_bytes(int from, int to, uint64_t bytes) {
  constexpr uint64_t kChunk = 1 << 20;
  std::vector<std::byte> chunk(std::min(kChunk, bytes));
  for (uint64_t at = 0; at < bytes; at += kChunk) {
    const uint64_t piece = std::min(kChunk, bytes - at);
    if (!read_all(from, chunk.data(), piece, at) || !write_all(to, chunk.data(), piece, at)) return false;
  }
  return true;
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
    const auto named = has_name(journal->file_.fd(), path.text, problem);
    if (!named) return named.error();
    if (!*named) continue;
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
  const bool written = ftruncate(fd, off_t(end_)) == 0 && write_entry(fd, end_, &head, bytes);
  if (written && fsync(fd) == 0) {
    end_ += sizeof head + bytes.size();
    return {};
  }
  const Errc error = journal_error(written ? "sync" : "write", path_.text, problem);
  if (!written) {
    (void)!ftruncate(fd, off_t(end_));  // without its head it is no entry, cut off or not
    return error;
  }
  Problem why;
  if (!begin_anew(&why)) {
    (void)!ftruncate(fd, off_t(end_));
    Problem both;
    both.write("%s; and %s: nobody knows what of it is on the disk", problem->text, why.text);
    end_process(both.text);
  }
  return error;
}

// pool.journal-failed-sync.  Processes that wait for the lock find that the file has lost its name (open()).
Status PoolJournal::begin_anew(Problem* problem) {
  const NextFile to(path_);
  if (!to.open()) return to.failed("create", problem);
  if (flock(to.fd(), LOCK_EX | LOCK_NB) != 0) return to.failed("lock", problem);
  Status done = copy_bytes(file_.fd(), to.fd(), end_) ? Status() : Status(to.failed("copy the journal to", problem));
  if (done) done = to.take_place(problem);
  if (done && dup3(to.fd(), file_.fd(), O_CLOEXEC) < 0) done = to.failed("have", problem);
  if (!done) to.remove();
  return done;
}

// A process that waits for the lock meanwhile finds that the file has lost its name (open()).
Status PoolJournal::rewrite(const char* durable_path, uint64_t pool_id, uint64_t saves, const Keep& keep,
                            Problem* problem) {
  const BesideCopy path(durable_path, BesideCopy::kJournal);
  const File file(::open(path.text, O_RDWR | O_CLOEXEC));
  if (!file.open()) return errno == ENOENT ? Status() : Status(journal_error("open", path.text, problem));
  if (flock(file.fd(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return journal_error("lock", path.text, problem);
    return problem->set(Errc::kBusy, "%s is locked", path.text);
  }
  const auto named = has_name(file.fd(), path.text, problem);
  if (!named) return named.error();
  if (!*named) return problem->set(Errc::kBusy, "%s is locked", path.text);
  const NextFile to(path);
  if (!to.open()) return to.failed("create", problem);
  uint64_t end = 0;
  const auto copy = [&](EntryHead head, std::span<const std::byte> was) -> Status {
    std::vector<std::byte> bytes(was.begin(), was.end());
    keep(&head.kind, &bytes);
    head.bytes = bytes.size();
    if (!write_entry(to.fd(), end, &head, bytes)) return to.failed("write", problem);
    end += sizeof head + bytes.size();
    return {};
  };
  Status done = walk(file.fd(), path.text, pool_id, saves, copy, problem);
  if (done) done = to.take_place(problem);
  if (!done) to.remove();
  return done;
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

#include "tests/power/recorder.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace power {
namespace {

// Not through open(), which is what is recorded.
Header* map_log() {
  const char* path = getenv(kLogVariable);
  if (path == nullptr) return nullptr;
  const int fd = int(syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC));
  if (fd < 0) return nullptr;
  void* at = mmap(nullptr, kLogBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  syscall(SYS_close, fd);
  auto* header = static_cast<Header*>(at);
  return at == MAP_FAILED || header->magic != Header::kMagic ? nullptr : header;
}

std::string link_of(int fd) {
  char name[64], target[PATH_MAX];
  snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
  const ssize_t n = readlink(name, target, sizeof target);
  return n < 0 ? std::string() : std::string(target, size_t(n));
}

// Without ".", "..", and doubled slashes.
std::string plain(const std::string& path) {
  std::vector<std::string> parts;
  for (size_t at = 0; at < path.size();) {
    const size_t end = std::min(path.find('/', at), path.size());
    const std::string part = path.substr(at, end - at);
    if (part == ".." && !parts.empty()) parts.pop_back();
    if (!part.empty() && part != "." && part != "..") parts.push_back(part);
    at = end + 1;
  }
  std::string text;
  for (const std::string& part : parts) text += "/" + part;
  return text;
}

// What this thread knows of inodes: a look at /proc for each write would be dear.
struct Known {
  uint64_t inode = 0;
  bool recorded = false;
};
constexpr size_t kKnown = 1024;
thread_local Known known[kKnown];

bool all_zero(const void* from, uint64_t bytes) {
  const char* p = static_cast<const char*>(from);
  return bytes == 0 || (p[0] == 0 && memcmp(p, p + 1, bytes - 1) == 0);
}

}  // namespace

Recorder* Recorder::get() {
  static Header* const header = map_log();
  static Recorder* const recorder = header == nullptr ? nullptr : new Recorder(header);
  return recorder;
}

Recorder::Recorder(Header* header) : header_(header), root_(header->root) {
  struct stat s;
  if (stat(root_.c_str(), &s) == 0) device_ = s.st_dev;
}

bool Recorder::is_below(const std::string& full) const {
  return full.size() > root_.size() && full.compare(0, root_.size(), root_) == 0 && full[root_.size()] == '/';
}

// Not the servers' logs, their sockets, and their programs.
bool Recorder::has(const std::string& full) const {
  if (!is_below(full)) return false;
  const std::string name = full.substr(root_.size());
  if (name.rfind("/run/", 0) == 0 || name.rfind("/prefix/", 0) == 0) return false;
  return !(name.rfind("/node", 0) == 0 && name.find('/', 1) == name.size() - 4 &&
           name.substr(name.size() - 4) == "/log");
}

bool Recorder::has(int directory, const char* path, std::string* full) const {
  if (path[0] == '/') {
    *full = plain(path);
  } else if (directory == AT_FDCWD) {
    char here[PATH_MAX];
    if (getcwd(here, sizeof here) == nullptr) return false;
    *full = plain(std::string(here) + "/" + path);
  } else {
    *full = plain(link_of(directory) + "/" + path);
  }
  return has(*full);
}

bool Recorder::has(int fd, uint64_t* inode) {
  struct stat s;
  if (fstat(fd, &s) != 0 || !S_ISREG(s.st_mode) || s.st_dev != device_) return false;
  *inode = s.st_ino;
  Known& place = known[s.st_ino % kKnown];
  if (place.inode == s.st_ino) return place.recorded;
  const int error = errno;
  std::string path = link_of(fd);
  static const std::string kDeleted = " (deleted)";
  const bool deleted = path.size() > kDeleted.size() && path.substr(path.size() - kDeleted.size()) == kDeleted;
  if (deleted) path.resize(path.size() - kDeleted.size());
  place = {s.st_ino, has(path)};
  if (place.recorded && !deleted) Change(*this).opened(path, s.st_ino, 0);
  errno = error;
  return place.recorded;
}

bool Recorder::has_directory(int fd, uint64_t* inode) {
  struct stat s;
  if (fstat(fd, &s) != 0 || !S_ISDIR(s.st_mode) || s.st_dev != device_) return false;
  *inode = s.st_ino;
  const std::string path = link_of(fd);
  return path == root_ || has(path);
}

void Recorder::breaks(Broken why) { header_->broken.store(uint32_t(why)); }

Recorder::Change::Change(Recorder& recorder) : recorder_(recorder), errno_(errno) {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &signals_);
  Header& header = *recorder_.header_;
  for (;;) {
    if (pthread_mutex_lock(&header.mutex) == EOWNERDEAD) {
      recorder_.breaks(Broken::kDiedInside);
      pthread_mutex_consistent(&header.mutex);
    }
    header.inside.store(1);
    if (header.paused.load() == 0) break;  // the test that pauses looks at `inside` afterwards
    header.inside.store(0);
    pthread_mutex_unlock(&header.mutex);
    pthread_sigmask(SIG_SETMASK, &signals_, nullptr);
    usleep(1000);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
  }
  errno = errno_;
}

Recorder::Change::~Change() {
  const int error = errno;
  recorder_.header_->inside.store(0);
  pthread_mutex_unlock(&recorder_.header_->mutex);
  pthread_sigmask(SIG_SETMASK, &signals_, nullptr);
  errno = error;
}

void Recorder::Change::append(Kind kind, const std::string& path, const std::string& other, uint64_t inode, uint64_t at,
                              uint64_t length, const void* data) const {
  Header& header = *recorder_.header_;
  const uint64_t end = header.end.load(), data_bytes = data == nullptr ? 0 : length;
  const uint64_t bytes = (sizeof(Record) + path.size() + other.size() + data_bytes + 7) / 8 * 8;
  if (end + bytes > kLogBytes) return recorder_.breaks(Broken::kLogFull);
  char* to = reinterpret_cast<char*>(&header) + end;
  const Record record{
      uint32_t(bytes), kind, uint16_t(path.size()), uint16_t(other.size()), 0, uint32_t(getpid()), inode, at, length};
  memcpy(to, &record, sizeof record);
  to += sizeof record;
  memcpy(to, path.data(), path.size());
  memcpy(to + path.size(), other.data(), other.size());
  if (data_bytes != 0) memcpy(to + path.size() + other.size(), data, data_bytes);
  header.end.store(end + bytes);
  header.count.fetch_add(1);
}

void Recorder::Change::opened(const std::string& path, uint64_t inode, uint64_t flags) const {
  append(Kind::kOpen, path, "", inode, flags, 0, nullptr);
}

void Recorder::Change::wrote(uint64_t inode, uint64_t at, const void* from, uint64_t bytes) const {
  if (all_zero(from, bytes)) return zeroed(inode, at, bytes);
  append(Kind::kWrite, "", "", inode, at, bytes, from);
}

void Recorder::Change::zeroed(uint64_t inode, uint64_t at, uint64_t bytes) const {
  append(Kind::kZero, "", "", inode, at, bytes, nullptr);
}

void Recorder::Change::sized(uint64_t inode, uint64_t size) const {
  append(Kind::kSize, "", "", inode, size, 0, nullptr);
}

void Recorder::Change::named(Kind kind, const std::string& path, const std::string& other, uint64_t inode) const {
  append(kind, path, other, inode, 0, 0, nullptr);
}

void Recorder::Change::synced(Kind kind, uint64_t inode, uint64_t upto) const {
  append(kind, "", "", inode, upto, 0, nullptr);
}

}  // namespace power

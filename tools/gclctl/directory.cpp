#include "tools/gclctl/directory.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "tools/gclctl/failure.hpp"
#include "tools/gclctl/process.hpp"

namespace gclctl {
namespace {

constexpr off_t kFileBytesMax = 64 << 10;
constexpr mode_t kOthersWrite = S_IWGRP | S_IWOTH;

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) close(fd_);
  }
  int get() const { return fd_; }
  bool good() const { return fd_ >= 0; }
  struct stat status() const {
    struct stat found {};
    if (fstat(fd_, &found) != 0) fail("fstat: {}", strerror(errno));
    return found;
  }

 private:
  int fd_;
};

Descriptor open_directory(const fs::path& path) {
  Descriptor directory(open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory.good()) fail("{}: {}", path.string(), strerror(errno));
  return directory;
}

// Whether only root can change what `path` names: every directory on the way is root's, and others may at most add
// names of their own to it.
bool only_root_changes(const fs::path& path) {
  fs::path at;
  for (const fs::path& part : path) {
    at /= part;
    struct stat found;
    if (lstat(at.c_str(), &found) != 0) return errno == ENOENT;
    if (!S_ISDIR(found.st_mode) || found.st_uid != 0) return false;
    if ((found.st_mode & kOthersWrite) != 0 && (found.st_mode & S_ISVTX) == 0) return false;
  }
  return true;
}

void make_as_caller(const fs::path& dir) {
  fs::create_directories(dir.parent_path());
  if (mkdir(dir.c_str(), 0700) != 0) fail("{}: {}", dir.string(), strerror(errno));
}

void make_for(const std::string& account, const fs::path& dir) {
  if (geteuid() != 0 || only_root_changes(dir.parent_path())) return make_as_caller(dir);
  const int code = run_as(account, [&] {
    make_as_caller(dir);
    return 0;
  });
  if (code != 0) fail("make {} yourself, and give it to the account that is to run the servers", dir.string());
}

}  // namespace

std::string account_for(const fs::path& dir) {
  struct stat found;
  if (lstat(dir.c_str(), &found) == 0 && geteuid() == 0 && found.st_uid != 0) return account_name(found.st_uid);
  return account_for_new_cluster();
}

bool take_directory(const fs::path& dir, const std::string& account) {
  const bool made = !fs::exists(fs::symlink_status(dir));
  if (made) make_for(account, dir);
  const Descriptor directory = open_directory(dir);
  if (!fs::is_empty(dir)) fail("{} is there and is not empty: give a new directory", dir.string());
  if (directory.status().st_uid == 0 && geteuid() == 0) {
    if (!only_root_changes(dir)) fail("{} belongs to root, in a directory of somebody else's", dir.string());
    give_to(account, directory.get());
  }
  if (account_name(directory.status().st_uid) != account) fail("{} does not belong to {}", dir.string(), account);
  if (fchmod(directory.get(), 0700) != 0) fail("cannot set the mode of {}: {}", dir.string(), strerror(errno));
  return made;
}

void make_private_directory(const fs::path& path) {
  if (mkdir(path.c_str(), 0700) == 0) return;
  if (errno != EEXIST) fail("{}: {}", path.string(), strerror(errno));
  struct stat found;
  if (lstat(path.c_str(), &found) != 0) fail("{}: {}", path.string(), strerror(errno));
  if (!S_ISDIR(found.st_mode) || found.st_uid != geteuid())
    fail("{} is there and belongs to somebody else: remove it", path.string());
  if (chmod(path.c_str(), 0700) != 0) fail("cannot set the mode of {}: {}", path.string(), strerror(errno));
}

OwnersFile read_owners_file(const fs::path& dir, const std::string& name) {
  OwnersFile said;
  const auto missing = [&] {
    if (errno != ENOENT && errno != ENOTDIR && errno != ELOOP)
      fail("{} cannot be read: {}", (dir / name).string(), strerror(errno));
    return said;
  };
  const Descriptor directory(open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!directory.good()) return missing();
  const Descriptor file(openat(directory.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file.good()) return missing();
  said.dir = fs::read_symlink(fmt::format("/proc/self/fd/{}", directory.get()));
  const uid_t owner = directory.status().st_uid;
  const struct stat found = file.status();
  if (!S_ISREG(found.st_mode) || found.st_uid != owner || found.st_size > kFileBytesMax) return said;
  said.text.resize(size_t(found.st_size));
  if (read(file.get(), said.text.data(), said.text.size()) != found.st_size)
    fail("{} cannot be read: {}", (dir / name).string(), strerror(errno));
  said.found = true;
  said.account = account_name(owner);
  return said;
}

void sync_path(const fs::path& path) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.good() || fsync(file.get()) != 0) fail("cannot sync {}: {}", path.string(), strerror(errno));
}

void sync_file_system(const fs::path& dir) {
  const Descriptor file(open(dir.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!file.good() || syncfs(file.get()) != 0) fail("cannot sync {}: {}", dir.string(), strerror(errno));
}

}  // namespace gclctl

// power_image begin ROOT RECORDING       a recording of what is below ROOT; see record.hpp
// power_image list RECORDING             number, kind and path of each record that is not of bytes
// power_image make RECORDING NUMBER SEED TARGET [--deaf REGEX]
//                                        what there may be when power is lost before record NUMBER; SEED 0: what is
//                                        durable, and nothing else
// power_image whole RECORDING TARGET     what there is when it is not
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <new>

#include "tests/power/disk.hpp"

namespace power {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kSyncUs = 300;                           // as quick disks do
constexpr uint64_t kNothing = 0, kEverything = UINT64_MAX;  // seeds: of what is not durable

[[noreturn]] void fail(const std::string& text) {
  fprintf(stderr, "power_image: %s\n", text.c_str());
  exit(1);
}

void make_log(const std::string& path, const std::string& root) {
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_EXCL, 0666);
  if (fd < 0 || fchmod(fd, 0666) != 0 || ftruncate(fd, off_t(kLogBytes)) != 0) fail("cannot make " + path);
  void* at = mmap(nullptr, kFirstRecord, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (at == MAP_FAILED) fail("cannot map " + path);
  auto* header = new (at) Header();
  header->end = kFirstRecord;
  header->count = 1;  // 0 is no record's
  header->sync_us = kSyncUs;
  pthread_mutexattr_t shared;
  pthread_mutexattr_init(&shared);
  pthread_mutexattr_setpshared(&shared, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&shared, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&header->mutex, &shared);
  snprintf(header->root, sizeof header->root, "%s", root.c_str());
  header->magic = Header::kMagic;
}

// REQUIRES: nothing changes there.
void begin(const std::string& root_as_told, const std::string& recording) {
  const std::string root = fs::canonical(root_as_told);
  std::ofstream names(recording + "/names");
  names << root << "\n";
  const auto note = [&](const fs::path& path) {
    struct stat s;
    if (lstat(path.c_str(), &s) != 0) fail("cannot look at " + path.string());
    const fs::path copy = recording + "/initial" + path.string().substr(root.size());
    if (S_ISDIR(s.st_mode))
      fs::create_directory(copy);
    else if (S_ISREG(s.st_mode))
      fs::copy_file(path, copy);
    else
      return;
    names << (S_ISDIR(s.st_mode) ? 'd' : 'f') << s.st_ino << " " << path.string() << "\n";
  };
  note(root);
  for (auto it = fs::recursive_directory_iterator(root); it != fs::recursive_directory_iterator(); ++it) {
    const std::string name = it->path().string().substr(root.size());
    if (name == "/prefix" || name == "/run") {
      it.disable_recursion_pending();
      continue;
    }
    note(it->path());
  }
  if (!names.flush()) fail("cannot write " + recording + "/names");
  make_log(recording + "/log", root);
}

class Log {
 public:
  explicit Log(const std::string& recording) {
    const int fd = open((recording + "/log").c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) fail("there is no " + recording + "/log");
    struct stat s;
    fstat(fd, &s);
    void* at = mmap(nullptr, size_t(s.st_size), PROT_READ, MAP_SHARED, fd, 0);
    close(fd);
    if (at == MAP_FAILED) fail("cannot map " + recording + "/log");
    header_ = static_cast<const Header*>(at);
    if (header_->magic != Header::kMagic) fail(recording + "/log is no recording");
    if (header_->broken != 0) fail("the recording is worth nothing: reason " + std::to_string(header_->broken));
  }
  // Calls visit(number, record) for those before `end`.
  template <typename Visit>
  void each(uint64_t end, Visit visit) const {
    uint64_t number = 1;
    for (uint64_t at = kFirstRecord; at < header_->end && number < end; ++number) {
      const auto& record = *reinterpret_cast<const Record*>(reinterpret_cast<const char*>(header_) + at);
      visit(number, record);
      at += record.bytes;
    }
  }

 private:
  const Header* header_;
};

void list(const std::string& recording) {
  static constexpr const char* kNames[] = {"open",   "write", "zero",  "size", "rename", "link",
                                           "unlink", "mkdir", "rmdir", "sync", "syncall"};
  Disk disk(recording, "");
  Log(recording).each(UINT64_MAX, [&](uint64_t number, const Record& record) {
    disk.apply(number, record);
    printf("%llu %s %s\n", static_cast<unsigned long long>(number), kNames[size_t(record.kind)],
           disk.path_of(record).c_str());
  });
}

void make(const std::string& recording, uint64_t end, uint64_t seed, const std::string& target,
          const std::string& deaf) {
  std::mt19937_64 chance(seed * 1'000'003 + end);
  const Survival survival = seed == kEverything ? kAll : seed == kNothing ? Survival() : Survival::of(chance);
  Disk disk(recording, deaf);
  Log(recording).each(end, [&](uint64_t number, const Record& record) { disk.apply(number, record); });
  disk.lose_power(chance, survival);
  disk.write(target);
  printf("bytes %.2f, names %.2f%s\n", survival.bytes, survival.names, survival.ordered ? " in order" : "");
}

}  // namespace
}  // namespace power

int main(int count, char** words) {
  const std::vector<std::string> word(words + 1, words + count);
  if (word.size() == 3 && word[0] == "begin")
    power::begin(word[1], word[2]);
  else if (word.size() == 2 && word[0] == "list")
    power::list(word[1]);
  else if ((word.size() == 5 || (word.size() == 7 && word[5] == "--deaf")) && word[0] == "make")
    power::make(word[1], std::stoull(word[2]), std::stoull(word[3]), word[4], word.size() == 7 ? word[6] : "");
  else if (word.size() == 3 && word[0] == "whole")
    power::make(word[1], UINT64_MAX, power::kEverything, word[2], "");
  else
    power::fail(
        "begin ROOT RECORDING | list RECORDING | make RECORDING NUMBER SEED TARGET [--deaf REGEX] | whole RECORDING "
        "TARGET");
  return 0;
}

#include "tools/gclctl/patient_deadline.hpp"

#include <sys/stat.h>

#include <set>

#include "tools/gclctl/failure.hpp"

namespace gclctl {
namespace {

// Of files whose names begin and end so, what changes with each write.
void look_at(const fs::path& directory, const std::string& begin, const std::string& end, std::set<std::string>* seen) {
  std::error_code none;
  for (const auto& entry : fs::directory_iterator(directory, none)) {
    const std::string name = entry.path().filename();
    struct stat s;
    if (name.starts_with(begin) && name.ends_with(end) && stat(entry.path().c_str(), &s) == 0)
      seen->insert(fmt::format("{} {} {} {}.{:09}\n", name, s.st_ino, s.st_size, s.st_mtim.tv_sec, s.st_mtim.tv_nsec));
  }
}

}  // namespace

bool PatientDeadline::is_over() {
  if (Clock::now() <= over_) return false;
  const std::string now = look();
  if (now == seen_) return true;
  seen_ = now;
  over_ = Clock::now() + max_;
  return false;
}

std::string PatientDeadline::look() const {
  std::set<std::string> seen;
  look_at(c_.pool_dir(), c_.pool().filename(), ".new", &seen);  // MemoryPath
  look_at(c_.saved_pool().parent_path(), c_.saved_pool().filename().string() + ".next", "",
          &seen);  // pool.saved-beside
  return fmt::format("{}", fmt::join(seen, ""));
}

}  // namespace gclctl

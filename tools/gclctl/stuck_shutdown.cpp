#include "tools/gclctl/stuck_shutdown.hpp"

#include <algorithm>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "tools/gclctl/failure.hpp"
#include "tools/gclctl/process.hpp"

namespace gclctl {
namespace {

// Empty: it has none, or is gone.
std::vector<pid_t> children_of(pid_t parent) {
  std::ifstream in(fmt::format("/proc/{0}/task/{0}/children", parent));
  std::vector<pid_t> children;
  for (pid_t child; in >> child;) children.push_back(child);
  return children;
}

// "postgres: gcl1: checkpointer "
std::string title_of(pid_t process) {
  const Arguments arguments = arguments_of(process);
  return arguments.empty() ? "" : arguments[0];
}

// Waits for nothing but a signal or a latch: neither runs nor waits for a disk.
bool sleeps(pid_t process) {
  std::ifstream in(fmt::format("/proc/{}/stat", process));
  std::string text;
  std::getline(in, text);
  const size_t name_ends = text.rfind(')');
  return name_ends != std::string::npos && text.substr(name_ends + 1, 2) == " S";
}

// While they write the last checkpoint, their titles say so.
bool may_be_forgotten(pid_t process) {
  const std::string title = title_of(process);
  const bool either = title.find("checkpointer") != std::string::npos || title.find("startup") != std::string::npos;
  return title.starts_with("postgres: ") && either && title.find("performing") == std::string::npos;
}

}  // namespace

bool StuckShutdown::is_certain() {
  const Clock::time_point now = Clock::now();
  const std::vector<pid_t> children = children_of(postmaster_);
  bool any_forgotten = false, at_work = false, others_stay = false;
  std::map<pid_t, Clock::time_point> others;
  for (const pid_t child : children) {
    if (title_of(child).find(": gcl network worker") != std::string::npos) continue;  // it ends with its postmaster
    if (may_be_forgotten(child)) {
      any_forgotten = true;
      at_work |= !sleeps(child);  // at a checkpoint that was under way
      continue;
    }
    const auto before = others_.find(child);
    const Clock::time_point seen = before != others_.end() ? before->second : now;
    others.emplace(child, seen);
    others_stay |= now - seen > kRefusalMax;
  }
  others_ = std::move(others);
  if (!any_forgotten || at_work || others_stay) {
    since_ = Clock::time_point::max();
    return false;
  }
  since_ = std::min(since_, now);
  return now - since_ >= kAtLeast;
}

}  // namespace gclctl

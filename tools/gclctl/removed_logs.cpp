#include "tools/gclctl/removed_logs.hpp"

#include <algorithm>
#include <cstdio>

#include "coherence/pool/pool.hpp"
#include "coherence/region/pool_outline.hpp"
#include "tools/gclctl/directory.hpp"
#include "tools/gclctl/failure.hpp"

namespace gclctl {
namespace {

struct Kept {
  int k;
  uint64_t upto;
  fs::path path;
};

// Those of one primary, or of all (0), in order.
std::vector<Kept> kept_logs(const Cluster& c, int k) {
  std::vector<Kept> found;
  for (const auto& entry : fs::directory_iterator(c.dir)) {
    Kept one{0, 0, entry.path()};
    unsigned long long upto;
    char behind;
    if (sscanf(entry.path().filename().c_str(), "removed%d.%llu%c", &one.k, &upto, &behind) != 2) continue;
    one.upto = upto;
    if (k == 0 || one.k == k) found.push_back(one);
  }
  std::sort(found.begin(), found.end(), [](const Kept& a, const Kept& b) { return a.upto < b.upto; });
  return found;
}

}  // namespace

recovery::History history_of(const fs::path& saved) {
  coherence::Problem problem;
  const auto copy = coherence::outline_pool(saved.c_str(), &problem);
  if (!copy) fail("{}", problem.text);
  auto history = recovery::read_history(saved.c_str(), copy->pool_id, copy->saves, &problem);
  if (!history) fail("{}", problem.text);
  return history.take();
}

std::vector<LogPlace> logs_of(const Cluster& c, int k) {
  std::vector<LogPlace> places;
  uint64_t after = 0;
  for (const Kept& one : kept_logs(c, k)) {
    places.push_back({one.path, after, one.upto});
    after = one.upto;
  }
  places.push_back({c.data(k), after, LogPlace::kNewest});
  return places;
}

std::vector<fs::path> kept_log_directories(const Cluster& c) {
  std::vector<fs::path> found;
  for (const Kept& one : kept_logs(c, 0)) found.push_back(one.path);
  return found;
}

bool keep_log(const Cluster& c, int k) {
  const recovery::History history = history_of(c.saved_pool());
  const uint64_t newest = history.node[k].newest_incarnation();
  if (newest == 0) return false;
  const fs::path aside = c.dir / fmt::format("removed{}.{}", k, newest);
  fs::create_directories(aside);
  fs::rename(c.data(k) / "pg_wal", aside / "pg_wal");
  for (const fs::path& changed : {aside, c.dir}) sync_path(changed);  // before the rest of its data is deleted
  return true;
}

void drop_logs(const Cluster& c) {
  const auto kept = kept_logs(c, 0);
  if (kept.empty()) return;
  const recovery::History history = history_of(c.saved_pool());
  for (const Kept& one : kept)
    if (!history.node[one.k].joined(0, one.upto)) fs::remove_all(one.path);
}

}  // namespace gclctl

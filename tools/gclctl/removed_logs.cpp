#include "tools/gclctl/removed_logs.hpp"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <string_view>

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

// Of another name until it is whole (gclctl.removed-log-whole).
constexpr std::string_view kUnfinished = ".part";
fs::path unfinished(const fs::path& place) { return place.string() + std::string(kUnfinished); }

// Those of one primary, or of all (0), in order.
std::vector<Kept> kept_logs(const Cluster& c, int k, std::string_view suffix = "") {
  std::vector<Kept> found;
  for (const auto& entry : fs::directory_iterator(c.dir)) {
    Kept one{0, 0, entry.path()};
    const std::string name = entry.path().filename();
    unsigned long long upto;
    int length = 0;
    if (sscanf(name.c_str(), "removed%d.%llu%n", &one.k, &upto, &length) != 2) continue;
    if (std::string_view(name).substr(size_t(length)) != suffix) continue;
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

namespace {

// The directory for the log of the primary's newest incarnation; nullopt: it has not joined, or its log is kept.
std::optional<fs::path> place_for_log(const Cluster& c, int k) {
  const uint64_t newest = history_of(c.saved_pool()).node[k].newest_incarnation();
  const auto kept = kept_logs(c, k);
  if (newest == 0 || (!kept.empty() && kept.back().upto >= newest)) return std::nullopt;
  return c.dir / fmt::format("removed{}.{}", k, newest);
}

void finish(const fs::path& place) {
  sync_file_system(place.parent_path());
  fs::rename(unfinished(place), place);
  sync_path(place.parent_path());
}

}  // namespace

bool keep_log(const Cluster& c, int k, KeptLog how) {
  const auto place = place_for_log(c, k);
  if (!place) return false;
  const fs::path part = unfinished(*place), data = c.data(k);
  if (fs::exists(data / "pg_wal")) fs::remove_all(part);  // else it has been moved there, by a command that was killed
  fs::create_directories(part / "global");
  fs::copy_file(data / "global" / "pg_control", part / "global" / "pg_control",
                fs::copy_options::overwrite_existing);  // how far the log goes, at least (gclctl.hole-is-no-end)
  std::error_code not_moved;
  if (how == KeptLog::kMoved && fs::exists(data / "pg_wal")) fs::rename(data / "pg_wal", part / "pg_wal", not_moved);
  if (how == KeptLog::kCopied || not_moved)  // as from another disk
    fs::copy(data / "pg_wal", part / "pg_wal", fs::copy_options::recursive);
  finish(*place);
  return true;
}

std::optional<fs::path> note_missing_log(const Cluster& c, int k) {
  const auto place = place_for_log(c, k);
  if (!place) return std::nullopt;
  fs::create_directories(unfinished(*place) / "pg_wal");
  finish(*place);
  return place;
}

void drop_logs(const Cluster& c) {
  auto kept = kept_logs(c, 0);
  for (Kept& one : kept_logs(c, 0, kUnfinished)) kept.push_back(std::move(one));
  if (kept.empty()) return;
  const recovery::History history = history_of(c.saved_pool());
  for (const Kept& one : kept)
    if (!history.node[one.k].joined(0, one.upto)) fs::remove_all(one.path);
}

}  // namespace gclctl

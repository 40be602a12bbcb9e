// gclctl restore-point, and what restore needs of one.
#include "tools/gclctl/restore_point.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iterator>
#include <thread>

#include "coherence/pool/pool.hpp"
#include "coherence/region/pool_outline.hpp"
#include "coherence/region/since_save.hpp"
#include "tools/gclctl/backup_wal.hpp"
#include "tools/gclctl/checkpoint_lock.hpp"
#include "tools/gclctl/cut.hpp"
#include "tools/gclctl/directory.hpp"
#include "tools/gclctl/failure.hpp"
#include "tools/gclctl/point_rings.hpp"
#include "tools/gclctl/prefix.hpp"
#include "tools/gclctl/process.hpp"
#include "tools/gclctl/text_file.hpp"
#include "tools/gclctl/verbs.hpp"

namespace gclctl {
namespace {

constexpr const char* kPoints = "points";
constexpr auto kArchivedMax = std::chrono::seconds(30);
constexpr auto kAnswersMax = std::chrono::seconds(10);

std::string life_name(int k) { return fmt::format("life{}", k); }

// As text_of_time() writes it, so that times compare as texts do.
std::string normal_time(const std::string& text) {
  int year, month, day, hour, minute, second, read = 0;
  if (sscanf(text.c_str(), "%4d-%2d-%2d%*[ T]%2d:%2d:%2d%n", &year, &month, &day, &hour, &minute, &second, &read) != 6)
    fail("\"{}\" is no time; write it as UTC, like 2026-01-31 23:59:59", text);
  std::string rest = text.substr(size_t(read)), fraction = "000000";
  if (rest.starts_with(".")) {
    const size_t end = std::min(rest.find_first_not_of("0123456789", 1), rest.size());
    fraction = (rest.substr(1, end - 1) + fraction).substr(0, 6);
    rest.erase(0, end);
  }
  if (!rest.empty() && rest != "+00" && rest != "Z")
    fail("\"{}\": a time is written as UTC, with +00 or nothing", text);
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02}.{}+00", year, month, day, hour, minute, second, fraction);
}

class NewPoint {
 public:
  NewPoint(const Cluster& c, fs::path archive) : c_(c), archive_(std::move(archive)), lock_(c.saved_pool()) {}

  void run() {
    AllPrimaries primaries(c_);
    std::map<int, WalSegments> segments;
    for (const int k : c_.chosen(0)) segments[k] = segments_of(k, primaries[k]);
    coherence::Problem problem;
    const auto copy = coherence::outline_pool(c_.saved_pool().c_str(), &problem);
    if (!copy) fail("{}", problem.text);
    const auto lives = read_lives();
    const Cut cut = primaries.take_cut();
    point_.server = server_version(c_.bindir(c_.chosen(0).front()));
    point_.time = text_of_time(cut.time);
    point_.pool_id = copy->pool_id;
    point_.saves = copy->saves;
    point_.cut = cut.position;
    write(cut, lives);
    // A primary that answers has not been started anew since the cut: journal and lives are those of the cut.
    for (const int k : c_.chosen(0)) (void)primaries[k].require("SELECT pg_catalog.pg_switch_wal()", kAnswersMax);
    if (read_lives() != lives) fail("a primary was just starting: make the restore point again");
    fs::rename(fresh_, place_);
    sync_path(place_.parent_path());
    fmt::print("restore point {}\n", point_.time);
    fflush(stdout);
    for (const auto& [k, position] : cut.position) wait_until_archived(k, segments.at(k), position);
    drop_rings_of_point(c_.saved_pool(), place_, point_);
  }

 private:
  std::map<int, std::string> read_lives() const {
    std::map<int, std::string> lives;
    for (const int k : c_.chosen(0)) {
      const fs::path file = c_.data(k) / "gcl_ddl" / "life";
      lives[k] = read_text(file);
    }
    return lives;
  }

  void write(const Cut& cut, const std::map<int, std::string>& lives) {
    place_ = archive_ / kPoints / point_.time;
    fresh_ = place_.string() + ".new";
    if (fs::create_directories(place_.parent_path())) sync_path(archive_);
    fs::remove_all(fresh_);
    fs::create_directory(fresh_);
    const fs::path journal = coherence::BesideCopy(c_.saved_pool().c_str(), coherence::BesideCopy::kJournal).text;
    point_.files[journal.filename()] =
        copy_open_file(*open_to_read(journal), fresh_ / journal.filename(), cut.journal_bytes);
    for (const auto& [k, life] : lives) {
      write_text(fresh_ / life_name(k), life);
      point_.files[life_name(k)] = sum_of(fresh_ / life_name(k));
    }
    point_.write(fresh_, BackupManifest::kPointFile);
  }

  void wait_until_archived(int k, const WalSegments& segments, uint64_t position) const {
    const fs::path last = archive_ / fmt::format("node{}", k) / segments.name(position - 1);
    const auto deadline = std::chrono::steady_clock::now() + kArchivedMax;
    std::error_code none;
    while (fs::file_size(last, none) != segments.bytes || none) {
      if (std::chrono::steady_clock::now() > deadline)
        fail(
            "the restore point cannot be used before the archive has {}: primary {} has not put it there in {} s; is "
            "its archive_command set, and does it work? See pg_stat_archiver",
            last.string(), k, kArchivedMax.count());
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
  }

  const Cluster& c_;
  const fs::path archive_;
  const RequiredCheckpointLock lock_;
  BackupManifest point_;
  fs::path place_, fresh_;
};

// gclctl.later-by-position.  Where the logs of two primaries differ in that, one was made anew meanwhile.
bool is_later(const BackupManifest& one, const BackupManifest& other) {
  bool some = false, all = true;
  for (const auto& [k, position] : one.cut) {
    const auto before = other.cut.find(k);
    if (before == other.cut.end()) continue;
    some |= position >= before->second;
    all &= position >= before->second;
  }
  return some == all ? all : one.time >= other.time;
}

bool goes_on_from(const BackupManifest& point, const BackupManifest& backup) {
  return point.pool_id == backup.pool_id && point.saves == backup.saves && is_later(point, backup);
}

}  // namespace

int restore_point(const std::string& dir, const std::string& archive) {
  const Cluster c = Cluster::load(dir);
  const fs::path place = fs::absolute(archive);
  return run_as(c.account, [&] {
    if (!fs::is_directory(place)) fail("there is no directory {}", place.string());
    NewPoint(c, place).run();
    return 0;
  });
}

RestorePoint find_point(const fs::path& archive, const BackupManifest& backup, const std::string& upto) {
  const std::string latest = upto.empty() ? "" : normal_time(upto);
  RestorePoint found{archive, {}, {}};
  const fs::path points = archive / kPoints;
  if (!fs::is_directory(points)) fail("there is no {}: gclctl restore-point makes it", points.string());
  for (const auto& entry : fs::directory_iterator(points)) {
    const std::string time = entry.path().filename();
    if (time.ends_with(".new") || (!latest.empty() && time > latest)) continue;
    const BackupManifest point = BackupManifest::read(entry.path(), BackupManifest::kPointFile);
    if (!goes_on_from(point, backup) || (!found.dir.empty() && !is_later(point, found.what))) continue;
    found.dir = entry.path();
    found.what = point;
  }
  if (found.dir.empty())
    fail(
        "{} has no restore point{} that goes on from this backup, which is of {}: a point is of the same save of the "
        "pool (a stop of all primaries ends that), and not older",
        points.string(), latest.empty() ? "" : " up to " + latest, backup.time);
  check_files(found.dir, found.what);
  const auto numbers = [](const BackupManifest& of) {
    std::vector<int> all;
    for (const auto& [k, position] : of.cut) all.push_back(k);
    return all;
  };
  if (numbers(found.what) != numbers(backup))
    fail("primaries were added or removed between the backup and the restore point of {}: restore a later backup",
         found.what.time);
  return found;
}

void place_archived_wal(const RestorePoint& point, int k, uint64_t backup_cut, const fs::path& data) {
  const uint64_t cut = point.what.cut.at(k);
  std::string last;
  for (const auto& entry : fs::directory_iterator(data / "pg_wal"))
    if (const std::string name = entry.path().filename(); is_segment_name(name) && name > last) last = name;
  if (last.empty()) fail("the backup has no WAL of primary {}", k);
  const WalSegments segments{uint32_t(std::stoul(last.substr(0, 8), nullptr, 16)),
                             fs::file_size(data / "pg_wal" / last)};
  for (uint64_t at = segments.begin_of(backup_cut - 1); at < cut; at += segments.bytes) {
    const std::string name = segments.name(at);
    const fs::path archived = point.archive / fmt::format("node{}", k) / name, here = data / "pg_wal" / name;
    if (!fs::exists(archived)) fail("the archive has no {}, which the restore point needs", archived.string());
    fs::remove(here);
    (void)copy_open_file(*open_to_read(archived), here, std::min(segments.bytes, cut - at), segments.bytes);
  }
  fs::copy_file(point.dir / life_name(k), data / "gcl_ddl" / "life", fs::copy_options::overwrite_existing);
}

}  // namespace gclctl

#include "tools/gclctl/point_rings.hpp"

#include <algorithm>

#include "recovery/checkpoint.hpp"
#include "recovery/restart_journal.hpp"
#include "tools/gclctl/directory.hpp"
#include "tools/gclctl/failure.hpp"

namespace gclctl {
namespace {

using coherence::Errc;
using coherence::Problem;
using recovery::Death;

std::vector<Death> deaths_in_journal_of(const fs::path& saved, const BackupManifest& of) {
  Problem problem;
  const auto history = recovery::read_history(saved.c_str(), of.pool_id, of.saves, &problem);
  if (!history) fail("{}", problem.text);
  std::vector<Death> all;
  for (const recovery::NodeHistory& node : history->node)
    all.insert(all.end(), node.deaths().begin(), node.deaths().end());
  return all;
}

recovery::Checkpoint checkpoint_of(const fs::path& saved, const BackupManifest& of) {
  Problem problem;
  auto there = recovery::read_checkpoint(saved.c_str(), of.pool_id, of.saves, &problem);
  if (!there) fail("{}", problem.text);
  return there.take();
}

const Death* with_ring(const std::vector<Death>& deaths, const Death& one) {
  const auto found = std::ranges::find_if(deaths, [&](const Death& other) {
    return other.node == one.node && other.incarnation == one.incarnation && !other.framed.empty();
  });
  return found == deaths.end() ? nullptr : &*found;
}

bool lacks_ring(const Death& death) { return death.framed.empty() && death.ring_bytes() > 0; }

}  // namespace

void drop_rings_of_point(const fs::path& saved, const fs::path& point, const BackupManifest& of_point) {
  const recovery::Checkpoint checkpoint = checkpoint_of(saved, of_point);
  const std::vector<Death> kept = deaths_in_journal_of(point / saved.filename(), of_point);
  const auto is_twice = [&](const Death& death) {
    return checkpoint.has_ring(death) && with_ring(kept, death) != nullptr;
  };
  if (std::ranges::none_of(kept, is_twice)) return;
  sync_path(saved.parent_path());  // checkpoint.name-durable-first
  sync_file_system(point);
  Problem problem;
  const auto dropped = recovery::drop_rings(saved.c_str(), of_point.pool_id, of_point.saves, is_twice, &problem);
  if (!dropped && dropped.error() != Errc::kBusy) fail("{}", problem.text);  // a later point drops them, too
}

void put_back_rings(const fs::path& saved, const BackupManifest& of_point, const fs::path& points) {
  const recovery::Checkpoint checkpoint = checkpoint_of(saved, of_point);
  std::vector<Death> lacking = deaths_in_journal_of(saved, of_point), found;
  std::erase_if(lacking, [&](const Death& death) { return !lacks_ring(death) || checkpoint.has_ring(death); });
  for (const auto& entry : fs::directory_iterator(points)) {
    if (lacking.empty()) break;
    const fs::path& point = entry.path();
    if (point.string().ends_with(".new")) continue;
    const BackupManifest what = BackupManifest::read(point, BackupManifest::kPointFile);
    if (what.pool_id != of_point.pool_id || what.saves != of_point.saves) continue;
    check_files(point, what);
    const std::vector<Death> there = deaths_in_journal_of(point / saved.filename(), of_point);
    std::erase_if(lacking, [&](const Death& death) {
      const Death* const whole = with_ring(there, death);
      if (whole != nullptr) found.push_back(*whole);
      return whole != nullptr;
    });
  }
  if (!lacking.empty())
    fail(
        "primary {} died before the restore point of {}, and the point that had its last records is gone from the "
        "archive: all points since the backup are needed",
        lacking[0].node.value, of_point.time);
  if (found.empty()) return;
  Problem problem;
  const auto put = recovery::put_back_rings(
      saved.c_str(), of_point.pool_id, of_point.saves, [&](const Death& death) { return with_ring(found, death); },
      &problem);
  if (!put) fail("{}", problem.text);
}

}  // namespace gclctl

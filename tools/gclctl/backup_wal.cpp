#include "tools/gclctl/backup_wal.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tools/gclctl/cut.hpp"
#include "tools/gclctl/failure.hpp"

namespace gclctl {
namespace {

constexpr auto kPatience = std::chrono::seconds(4);

}  // namespace

WalSegments segments_of(int k, Connection& connection) {
  const auto rows = connection.require(
      "SELECT pg_catalog.substr(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_insert_lsn()), 1, 8), setting "
      "FROM pg_catalog.pg_settings WHERE name = 'wal_segment_size'",
      kPatience);
  if (rows.empty()) fail("primary {} does not say how large its WAL segments are", k);
  return {uint32_t(std::stoul(rows[0][0], nullptr, 16)), std::stoull(rows[0][1])};
}

KeptWal::KeptWal(const Cluster& c, int k, Connection& connection)
    : wal_(c.data(k) / "pg_wal"), k_(k), segments_(segments_of(k, connection)) {
  const auto rows = connection.require(
      "SELECT restart_lsn FROM pg_catalog.pg_replication_slots WHERE slot_name = 'gcl' AND restart_lsn IS NOT NULL",
      kPatience);
  if (rows.empty())
    fail(
        "primary {} has not kept its WAL since the pool was last saved (replication slot gcl): a backup needs it. To "
        "stop all primaries in order saves the pool, and the next start keeps it again",
        k);
  from_ = position_in(rows[0][0]);
}

void KeptWal::copy(uint64_t cut, const fs::path& backup, std::map<std::string, FileSum>* files) const {
  const fs::path place = fs::path(fmt::format("node{}", k_)) / "data" / "pg_wal";
  for (uint64_t at = segments_.begin_of(from_); at < cut; at += segments_.bytes) {
    const std::string name = segments_.name(at);
    (*files)[place / name] = copy_open_file(*open_to_read(wal_ / name), backup / place / name,
                                            std::min(segments_.bytes, cut - at), segments_.bytes);
  }
}

}  // namespace gclctl

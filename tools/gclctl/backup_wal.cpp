#include "tools/gclctl/backup_wal.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "tools/gclctl/cut.hpp"
#include "tools/gclctl/failure.hpp"

namespace gclctl {
namespace {

constexpr const char* kKept = R"(
SELECT s.restart_lsn, pg_catalog.substr(pg_catalog.pg_walfile_name(s.restart_lsn), 1, 8), g.setting
  FROM pg_catalog.pg_replication_slots s, pg_catalog.pg_settings g
 WHERE s.slot_name = 'gcl' AND s.restart_lsn IS NOT NULL AND g.name = 'wal_segment_size')";

}  // namespace

KeptWal::KeptWal(const Cluster& c, int k, Connection& connection) : wal_(c.data(k) / "pg_wal"), k_(k) {
  const auto rows = connection.require(kKept, std::chrono::seconds(4));
  if (rows.empty())
    fail(
        "primary {} has not kept its WAL since the pool was last saved (replication slot gcl): a backup needs it. To "
        "stop all primaries in order saves the pool, and the next start keeps it again",
        k);
  from_ = position_in(rows[0][0]);
  timeline_ = uint32_t(std::stoul(rows[0][1], nullptr, 16));
  segment_bytes_ = std::stoull(rows[0][2]);
}

void KeptWal::copy(uint64_t cut, const fs::path& backup, std::map<std::string, FileSum>* files) const {
  const uint64_t per_id = (uint64_t{1} << 32) / segment_bytes_;
  const fs::path place = fs::path(fmt::format("node{}", k_)) / "data" / "pg_wal";
  for (uint64_t at = from_ / segment_bytes_ * segment_bytes_; at < cut; at += segment_bytes_) {
    const uint64_t segment = at / segment_bytes_;
    const std::string name = fmt::format("{:08X}{:08X}{:08X}", timeline_, segment / per_id, segment % per_id);
    (*files)[place / name] = copy_open_file(*open_to_read(wal_ / name), backup / place / name,
                                            std::min(segment_bytes_, cut - at), segment_bytes_);
  }
}

}  // namespace gclctl

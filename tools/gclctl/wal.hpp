// Wal: reads the write-ahead log of a data directory, of a server that runs or not, for its records of gcl: what
// pg_waldump, which does not know this resource manager, shows as a name without contents.
//
// The format is PostgreSQL 15's (access/xlogrecord.h, access/xlog_internal.h).  Reading ends where the log does: at the
// first record that is not whole, or does not follow the one before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>

namespace gclctl {

namespace fs = std::filesystem;

struct WalRecord {
  uint64_t lsn;  // where it begins
  uint32_t xid;
  uint8_t rmgr, info;
  std::span<const std::byte> data;  // its main data; 8-aligned
};

// Visits all records from the oldest segment in `data`/pg_wal on.  Returns where the log ends; 0: there is none.
// Fails if it cannot be read, or is of another version.
uint64_t visit_wal(const fs::path& data, const std::function<void(const WalRecord&)>& visit);

}  // namespace gclctl

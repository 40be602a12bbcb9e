#include "tools/gclctl/restart_logs.hpp"

#include <algorithm>
#include <cstring>

#include "bufmgr/log/record.hpp"
#include "tools/gclctl/failure.hpp"

namespace gclctl {

using bufmgr::RecordFrame;
using bufmgr::RecordReader;
using coherence::Errc;
using coherence::Result;

namespace {

// PostgreSQL's own (access/rmgrlist.h, access/xact.h, catalog/pg_control.h).
constexpr uint8_t kXlog = 0, kCheckpointShutdown = 0x00, kEndOfRecovery = 0x90;
constexpr uint8_t kXact = 1, kCommit = 0x00, kAbort = 0x20, kXactMask = 0x70;

}  // namespace

PrimaryLog::PrimaryLog(int primary, const LogPlace& place, const recovery::NodeHistory& history,
                       engine::CommitEvidence& evidence)
    : primary_(primary),
      history_(history),
      evidence_(evidence),
      reader_(place.data),
      from_(history.log_position(place.after, place.upto)) {
  if (reader_.first() == 0 || reader_.first() > from_)
    fail(
        "primary {} has written since the pool was last saved, and its log ({}) does not go back to {:X}/{:X}: the "
        "pool "
        "cannot be made again out of it",
        primary, (place.data / "pg_wal").string(), from_ >> 32, uint32_t(from_));
  reader_.to(from_);
}

Result<std::span<const std::byte>> PrimaryLog::next() {
  WalRecord record;
  while (reader_.next(&record)) {
    if (record.rmgr == kXact && (record.info & kXactMask) == kCommit) evidence_.host_committed(record.xid);
    if (record.rmgr == kXact && (record.info & kXactMask) == kAbort) evidence_.host_aborted(record.xid);
    if (record.rmgr == kXlog &&
        ((record.info & kKindMask) == kCheckpointShutdown || (record.info & kKindMask) == kEndOfRecovery))
      evidence_.host_restarted();
    if (record.rmgr != kResourceManager) continue;
    if ((record.info & kKindMask) == kNote) {
      if (const auto noted = evidence_.note(record.data, record.xid); !noted) {
        why_ = fmt::format("primary {}: the note at {:X}/{:X} of its log makes no sense", primary_, record.lsn >> 32,
                           uint32_t(record.lsn));
        return noted.error();
      }
    }
    if ((record.info & kKindMask) == kMiniTransaction && counts(record.data)) {
      ++records_;
      return record.data;
    }
  }
  return Errc::kNotFound;
}

bool PrimaryLog::counts(std::span<const std::byte> record) {
  if (!bufmgr::check_format(record)) return true;  // the merge says so
  const bufmgr::RecordHeader header = RecordReader(record).header();
  if (int(header.node) != primary_) return false;
  sequence_end_ = std::max<uint64_t>(sequence_end_, header.sequence + sizeof(RecordFrame) + record.size());
  return history_.counts(header.sequence);
}

Result<std::span<const std::byte>> RingLog::next() {
  const auto left = std::span(death_.framed).subspan(at_);
  if (left.empty()) return Errc::kNotFound;
  const auto record = bufmgr::framed_record(left, death_.first_sequence + at_);
  if (!record) return record.error() == Errc::kNotFound ? Errc::kCorrupt : record.error();
  at_ += sizeof(RecordFrame) + record->size();
  return *record;
}

}  // namespace gclctl

#include "tools/gclctl/restart_logs.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "bufmgr/log/record.hpp"
#include "extension/engine/txn/txn_id.hpp"
#include "tools/gclctl/control_file.hpp"
#include "tools/gclctl/failure.hpp"

namespace gclctl {

using bufmgr::RecordFrame;
using bufmgr::RecordReader;
using coherence::Errc;
using coherence::Result;
using recovery::Checkpoint;

namespace {

// PostgreSQL's own (access/rmgrlist.h, access/xact.h, catalog/pg_control.h).
constexpr uint8_t kXlog = 0, kCheckpointShutdown = 0x00, kEndOfRecovery = 0x90;
constexpr uint8_t kXact = 1, kCommit = 0x00, kAbort = 0x20, kXactMask = 0x70;

bool is_page_record(const WalRecord& record) {
  return record.rmgr == kResourceManager && (record.info & kKindMask) == kMiniTransaction;
}

const Checkpoint::Log* progress_in(const Checkpoint* from, int k, const LogPlace& place) {
  if (from == nullptr) return nullptr;
  for (const Checkpoint::Log& log : from->logs)
    if (int(log.node) == k && log.after == place.after) return &log;
  return nullptr;
}

uint64_t progress_in(const Checkpoint* from, const recovery::Death& death) {
  if (from == nullptr) return 0;
  for (const Checkpoint::Ring& ring : from->rings)
    if (ring.node == death.node.value && ring.incarnation == death.incarnation) return ring.at;
  return 0;
}

}  // namespace

// --- a primary's -----------------------------------------------------------------------------------------------------

PrimaryLog::PrimaryLog(int primary, const LogPlace& place, const recovery::NodeHistory& history,
                       engine::CommitEvidence& evidence, const Checkpoint::Log* from, const LogBounds& bounds)
    : primary_(primary),
      after_(place.after),
      upto_(history.newest_joined(place.upto)),
      history_(history),
      evidence_(evidence),
      bounds_(bounds),
      data_(place.data),
      checkpoint_(last_checkpoint_of(place.data)),
      goes_on_(from != nullptr),
      reader_(place.data),
      from_(from ? from->position : history.log_position(place.after, place.upto)) {
  if (reader_.first() == 0 || reader_.first() > from_)
    fail(
        "primary {} has written since the {}, and its log ({}) does not go back to {:X}/{:X}: the pool cannot be made "
        "again out of it",
        primary, from ? "last checkpoint" : "pool was last saved", (place.data / "pg_wal").string(), from_ >> 32,
        uint32_t(from_));
  reader_.to(from_);
  if (from) go_on_behind(*from, place.data);
}

void PrimaryLog::go_on_behind(const Checkpoint::Log& from, const fs::path& data) {
  WalRecord record;
  if (!reader_.next(&record) || record.lsn != from.position || record.crc != from.check)
    fail(
        "the log of primary {} ({}) is not the one that the last checkpoint was made of: it has another record at "
        "{:X}/{:X}",
        primary_, (data / "pg_wal").string(), from.position >> 32, uint32_t(from.position));
  last_ = {record.lsn, record.crc};
  sequence_end_ = from.sequence_end;
}

Result<std::span<const std::byte>> PrimaryLog::next() {
  if (returned_.lsn != 0) last_ = std::exchange(returned_, {});
  WalRecord record;
  while (!bounds_.pause && reader_.next(&record)) {
    const Place place{record.lsn, record.crc};
    if (is_page_record(record)) {
      coherence::Problem problem;
      if (const auto readable = bufmgr::check_format(record.data, &problem); !readable) {
        why_ = fmt::format("the log of primary {} ({}), at {:X}/{:X}: {}", primary_, (data_ / "pg_wal").string(),
                           record.lsn >> 32, uint32_t(record.lsn), problem.text);
        return readable.error();
      }
      const coherence::NodeId self{uint8_t(primary_)};
      const auto certain = recovery::is_certain(record.data, self, history_, bounds_.sequence[primary_]);
      if (certain == recovery::Certain::kNotYet) {
        reader_.to(record.lsn);
        return Errc::kNotFound;
      }
      note_end(record.data);
      if (certain == recovery::Certain::kYes) {
        ++records_;
        returned_ = place;
        return record.data;
      }
    } else if (const auto heard = hear(record); !heard) {
      return heard.error();
    }
    last_ = place;
  }
  return Errc::kNotFound;
}

void PrimaryLog::begin_behind_another() {
  if (!goes_on_) evidence_.host_restarted();
}

void PrimaryLog::require_whole() {
  if (!reader_.has_ended()) return;
  const uint64_t end = std::max(reader_.end(), from_);
  const std::optional<uint64_t> hole = reader_.hole();
  if (!hole && end > checkpoint_) return;
  const uint64_t at = hole.value_or(end);
  fail(
      "the log of primary {} ({}) has a hole at {:X}/{:X}: what was written behind it would be lost; give it the "
      "segment that is missing or damaged, from an archive, or restore a backup",
      primary_, (data_ / "pg_wal").string(), at >> 32, uint32_t(at));
}

void PrimaryLog::put_back() {
  --records_;
  reader_.to(std::exchange(returned_, {}).lsn);
}

coherence::Status PrimaryLog::hear(const WalRecord& record) {
  if (record.rmgr == kXact && (record.info & kXactMask) == kCommit) evidence_.host_committed(record.xid);
  if (record.rmgr == kXact && (record.info & kXactMask) == kAbort) evidence_.host_aborted(record.xid);
  if (record.rmgr == kXlog &&
      ((record.info & kKindMask) == kCheckpointShutdown || (record.info & kKindMask) == kEndOfRecovery))
    evidence_.host_restarted();
  if (record.rmgr != kResourceManager || (record.info & kKindMask) != kNote) return {};
  const auto noted = evidence_.note(record.data, record.xid);
  if (!noted)
    why_ =
        fmt::format("primary {}: the note at {:X}/{:X} of its log {}", primary_, record.lsn >> 32, uint32_t(record.lsn),
                    noted.error() == Errc::kIncompatible
                        ? "is of a kind that is not read here; a later version of gcl wrote it: use that one"
                        : "makes no sense");
  return noted;
}

void PrimaryLog::note_end(std::span<const std::byte> record) {
  if (!bufmgr::check_format(record)) return;
  const bufmgr::RecordHeader header = RecordReader(record).header();
  if (int(header.node) != primary_) return;
  sequence_end_ = std::max<uint64_t>(sequence_end_, header.sequence + sizeof(RecordFrame) + record.size());
}

std::optional<Checkpoint::Log> PrimaryLog::progress() const {
  if (last_.lsn == 0) return std::nullopt;
  return Checkpoint::Log{uint64_t(primary_), after_, upto_, last_.lsn, last_.crc, sequence_end_};
}

// The merge knows errors, and no exceptions.
Result<std::span<const std::byte>> LogsOfPrimary::next() {
  try {
    for (;;) {
      auto record = logs[at_]->next();
      if (record || record.error() != Errc::kNotFound || !logs[at_]->is_over() || at_ + 1 == logs.size()) return record;
      logs[at_]->require_whole();
      logs[++at_]->begin_behind_another();
    }
  } catch (const Failure& failure) {
    return logs[at_]->fails(failure.what());
  }
}

// --- a ring's --------------------------------------------------------------------------------------------------------

Result<std::span<const std::byte>> RingLog::next() {
  applied_ = at_;
  if (bounds_.pause || at_ >= death_.framed.size()) return Errc::kNotFound;
  const auto left = std::span(death_.framed).subspan(at_);
  const auto record = bufmgr::framed_record(left, death_.first_sequence + at_);
  if (record.error() == Errc::kIncompatible) {
    coherence::Problem problem;
    const Errc refused = bufmgr::refuse_format(left.subspan(sizeof(RecordFrame)), &problem);
    why_ = fmt::format("what the journal has of the redo ring of primary {}: {}", death_.node.value, problem.text);
    return refused;
  }
  if (!record) return Errc::kCorrupt;
  at_ += sizeof(RecordFrame) + record->size();
  return *record;
}

// --- all -------------------------------------------------------------------------------------------------------------

RestartLogs::RestartLogs(const std::map<int, std::vector<LogPlace>>& places, const recovery::History& history,
                         const Checkpoint* from)
    : history_(history) {
  if (from)
    for (const Checkpoint::Evidence& one : from->evidence) {
      auto read = engine::CommitEvidence::read(one.bytes);
      if (!read) fail("what the last checkpoint has of the transactions of primary {} makes no sense", one.node);
      evidence_.emplace(int(one.node), read.take());
    }
  for (int k = 0; k < coherence::kNodesMax; ++k) {
    const recovery::NodeHistory& node = history_.node[k];
    if (!node.joined()) continue;
    const auto of_node = places.find(k);
    if (of_node == places.end())
      fail("primary {} has written since the pool was last saved: its log is needed, and it is not known where it is",
           k);
    open(k, of_node->second, from);
    for (const recovery::Death& death : node.deaths()) {
      const uint64_t at = progress_in(from, death);
      if (death.framed.empty() && at < death.ring_bytes())
        fail(
            "primary {} has died since the pool was last saved, and the checkpoint that had its last records is gone: "
            "the pool cannot be made again out of the logs",
            k);
      rings_.push_back(std::make_unique<RingLog>(death, at, bounds_));
    }
  }
  hear_verdicts();
}

void RestartLogs::open(int k, const std::vector<LogPlace>& places, const Checkpoint* from) {
  for (const LogPlace& place : places) {
    if (!history_.node[k].joined(place.after, place.upto)) continue;
    if (!fs::exists(place.data))
      fail("primary {} has written since the pool was last saved, and there is no {}: its log is needed", k,
           place.data.string());
    logs_[k].logs.push_back(
        std::make_unique<PrimaryLog>(k, place, history_.node[k], evidence_[k], progress_in(from, k, place), bounds_));
  }
}

void RestartLogs::hear_verdicts() {
  const auto decide = [](engine::CommitEvidence& evidence, uint64_t sequence, bool committed) {
    committed ? evidence.commit(sequence) : evidence.roll_back(sequence);
  };
  for (auto& [k, evidence] : evidence_)
    for (const recovery::Death& death : history_.node[k].deaths())
      for (const recovery::Verdict& verdict : death.verdicts) decide(evidence, verdict.sequence, verdict.committed);
  for (const recovery::Decision& decision : history_.decisions) {
    const engine::TxnId id{decision.txn};
    if (const auto evidence = evidence_.find(id.node().value); evidence != evidence_.end())
      decide(evidence->second, id.sequence(), decision.committed);
  }
}

std::vector<recovery::LogSource*> RestartLogs::sources() {
  std::vector<recovery::LogSource*> all;
  for (const auto& ring : rings_) all.push_back(ring.get());
  for (auto& [k, logs] : logs_) all.push_back(&logs);
  return all;
}

uint64_t RestartLogs::sequence_end(int k) const {
  uint64_t end = 0;
  if (const auto logs = logs_.find(k); logs != logs_.end())
    for (const auto& log : logs->second.logs) end = std::max(end, log->sequence_end());
  for (const recovery::Death& death : history_.node[k].deaths()) end = std::max(end, death.hole);
  return end;
}

uint64_t RestartLogs::bytes() const {
  uint64_t sum = 0;
  for (const auto& [k, logs] : logs_)
    for (const auto& log : logs.logs) sum += log->bytes();
  return sum;
}

uint64_t RestartLogs::records() const {
  uint64_t sum = 0;
  for (const auto& [k, logs] : logs_)
    for (const auto& log : logs.logs) sum += log->records();
  return sum;
}

std::string RestartLogs::why() const {
  for (const auto& [k, logs] : logs_)
    for (const auto& log : logs.logs)
      if (!log->why().empty()) return log->why();
  for (const auto& ring : rings_)
    if (!ring->why().empty()) return ring->why();
  return "";
}

void RestartLogs::sync() const {
  for (const auto& [k, logs] : logs_)
    for (const auto& log : logs.logs) log->sync();
}

void RestartLogs::require_whole() const {
  for (const auto& [k, logs] : logs_)
    for (const auto& log : logs.logs) log->require_whole();
}

void RestartLogs::put_into(Checkpoint* checkpoint) const {
  checkpoint->logs.clear();
  checkpoint->rings.clear();
  checkpoint->evidence.clear();
  for (const auto& [k, logs] : logs_)
    for (const auto& log : logs.logs)
      if (const auto progress = log->progress()) checkpoint->logs.push_back(*progress);
  for (const auto& ring : rings_) checkpoint->rings.push_back(ring->progress());
  for (const auto& [k, evidence] : evidence_) checkpoint->evidence.push_back({uint64_t(k), evidence.written_down()});
}

}  // namespace gclctl

// The logs that the pool's copy is brought up to date with, by a restart or a checkpoint: each primary's WAL, and what
// the journal has of rings.
//
// gclctl.logs-one-behind-the-other: Of a primary that has had several data directories, a log is read when the former
//     one has been, to its end: the end of a transaction is what its own server says next, and not what another one
//     says that has its number.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "extension/engine/restart/commit_evidence.hpp"
#include "recovery/certain.hpp"
#include "recovery/checkpoint.hpp"
#include "recovery/log_merge.hpp"
#include "recovery/restart_journal.hpp"
#include "tools/gclctl/removed_logs.hpp"
#include "tools/gclctl/wal.hpp"

namespace gclctl {

// How far logs are read that are written meanwhile.
struct LogBounds {
  static constexpr uint64_t kAll = ~uint64_t{0};
  uint64_t sequence[coherence::kNodesMax];  // of each node's records, those below this one
  bool pause = false;                       // no log has a next record now
  LogBounds() { std::fill(std::begin(sequence), std::end(sequence), kAll); }
};

// A primary's WAL, from its first join since the save on, or from where a checkpoint has come to.  Records of pages
// that count go to the merge; what it says of transactions becomes evidence.
class PrimaryLog final : public recovery::LogSource {
 public:
  // Fails if the WAL does not go back as far, or is another one than the checkpoint was made of.  REQUIRES:
  // history.joined(), in that place.
  PrimaryLog(int primary, const LogPlace&, const recovery::NodeHistory& history, engine::CommitEvidence& evidence,
             const recovery::Checkpoint::Log* from, const LogBounds& bounds);
  coherence::Result<std::span<const std::byte>> next() override;
  void put_back() override;
  uint64_t bytes() const { return reader_.end() > from_ ? reader_.end() - from_ : 0; }  // read so far
  uint64_t records() const { return records_; }                                         // that count
  // No record of the node has this sequence, or a higher one, as far as was read.
  uint64_t sequence_end() const { return sequence_end_; }
  // How far it was read; empty: nothing was.
  std::optional<recovery::Checkpoint::Log> progress() const;
  // What was read is on the disk then; fails if it cannot be.
  void sync() const { reader_.sync(from_); }
  bool is_over() const { return reader_.has_ended(); }
  // Of the next data directory, before anything is read of it: what the former server left open has no end.
  void begin_behind_another();
  // Fails if the log ends where it lacks something (gclctl.hole-is-no-end).
  void require_whole();
  // What next() failed of.
  const std::string& why() const { return why_; }
  coherence::Errc fails(const char* why) { return why_ = why, coherence::Errc::kSystem; }

 private:
  void go_on_behind(const recovery::Checkpoint::Log& from, const fs::path& data);
  void note_end(std::span<const std::byte> record);
  coherence::Status hear(const WalRecord&);

  const int primary_;
  const uint64_t after_, upto_;  // the incarnations that it has
  const recovery::NodeHistory& history_;
  engine::CommitEvidence& evidence_;
  const LogBounds& bounds_;
  const fs::path data_;
  const uint64_t checkpoint_;  // the server's, as it was before anything was read
  const bool goes_on_;         // behind what a checkpoint of the pool has
  WalReader reader_;
  const uint64_t from_;
  uint64_t records_ = 0, sequence_end_ = 0;
  struct Place {
    uint64_t lsn = 0;
    uint32_t crc = 0;
  };
  Place last_, returned_;  // 0: none
  std::string why_;
};

// The logs of one primary, one behind the other.
class LogsOfPrimary final : public recovery::LogSource {
 public:
  coherence::Result<std::span<const std::byte>> next() override;
  void put_back() override { logs[at_]->put_back(); }
  std::vector<std::unique_ptr<PrimaryLog>> logs;

 private:
  size_t at_ = 0;  // what was returned last is this one's
};

// What a dead node's ring had, as the journal has kept it.
class RingLog final : public recovery::LogSource {
 public:
  RingLog(const recovery::Death& death, uint64_t from, const LogBounds& bounds)
      : death_(death), bounds_(bounds), at_(from), applied_(from) {}
  coherence::Result<std::span<const std::byte>> next() override;
  void put_back() override { at_ = applied_; }
  recovery::Checkpoint::Ring progress() const { return {death_.node.value, death_.incarnation, at_}; }
  const std::string& why() const { return why_; }  // as PrimaryLog

 private:
  const recovery::Death& death_;
  const LogBounds& bounds_;
  size_t at_, applied_;  // bytes; behind the record that was returned last, before it
  std::string why_;
};

// All of them.
class RestartLogs {
 public:
  // `from`: a checkpoint on the same save, or null.  Fails with what is missing.  Bounds may be set before each merge.
  // One thread; another one has its own.
  RestartLogs(const std::map<int, std::vector<LogPlace>>& places, const recovery::History&,
              const recovery::Checkpoint* from);
  const recovery::History& history() const { return history_; }
  LogBounds& bounds() { return bounds_; }
  std::vector<recovery::LogSource*> sources();
  // By primary; of those that have joined since the save.
  const std::map<int, engine::CommitEvidence>& evidence() const { return evidence_; }
  // No record of primary K has this sequence, or a higher one; 0: it has none.
  uint64_t sequence_end(int k) const;
  uint64_t bytes() const;
  uint64_t records() const;
  std::string why() const;  // what a log failed of; or nothing
  void sync() const;
  void require_whole() const;  // as PrimaryLog, of each
  void put_into(recovery::Checkpoint* checkpoint) const;

 private:
  void open(int k, const std::vector<LogPlace>& places, const recovery::Checkpoint* from);
  void hear_verdicts();

  const recovery::History& history_;
  LogBounds bounds_;
  std::map<int, engine::CommitEvidence> evidence_;
  std::map<int, LogsOfPrimary> logs_;
  std::vector<std::unique_ptr<RingLog>> rings_;
};

}  // namespace gclctl

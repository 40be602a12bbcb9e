// The logs that a pool which memory has lost is made of: each primary's WAL, and what the journal has of rings.
#pragma once

#include <memory>

#include "extension/engine/restart/commit_evidence.hpp"
#include "recovery/log_merge.hpp"
#include "recovery/restart_journal.hpp"
#include "tools/gclctl/removed_logs.hpp"
#include "tools/gclctl/wal.hpp"

namespace gclctl {

// A primary's WAL, from its first join since the save on.  Records of pages that count go to the merge; what it says of
// transactions becomes evidence.
class PrimaryLog final : public recovery::LogSource {
 public:
  // Fails if the WAL does not go back as far.  REQUIRES: history.joined(), in that place.
  PrimaryLog(int primary, const LogPlace&, const recovery::NodeHistory& history, engine::CommitEvidence& evidence);
  coherence::Result<std::span<const std::byte>> next() override;
  uint64_t bytes() const { return reader_.end() - from_; }  // read so far
  uint64_t records() const { return records_; }             // that count
  // No record of the node has this sequence, or a higher one, as far as was read.
  uint64_t sequence_end() const { return sequence_end_; }
  // What next() failed of.
  const std::string& why() const { return why_; }

 private:
  bool counts(std::span<const std::byte> record);
  void note(const WalRecord&);

  const int primary_;
  const recovery::NodeHistory& history_;
  engine::CommitEvidence& evidence_;
  WalReader reader_;
  const uint64_t from_;
  uint64_t records_ = 0, sequence_end_ = 0;
  std::string why_;
};

// What a dead node's ring had, as the journal has kept it.
class RingLog final : public recovery::LogSource {
 public:
  explicit RingLog(const recovery::Death& death) : death_(death) {}
  coherence::Result<std::span<const std::byte>> next() override;

 private:
  const recovery::Death& death_;
  size_t at_ = 0;
};

}  // namespace gclctl

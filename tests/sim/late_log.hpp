// LateLog: a node's log, flushed by Cluster::write_log() only.  It keeps its records, if it is to.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "bufmgr/log/log_sink.hpp"
#include "mutation.hpp"
#include "scheduler.hpp"

namespace sim {

class LateLog final : public bufmgr::LogSink {
 public:
  coherence::Lsn append(std::span<const std::byte> record) override {
    scheduler()->yield(FaultPoint::kAppend);
    std::vector<std::byte> bytes;
    if (keeps_) bytes.assign(record.begin(), record.end());  // a memcpy, in which others go on
    end_ += record.size();
    if (keeps_) kept_.push_back({end_, std::move(bytes)});
    return {end_};
  }
  coherence::Lsn flushed() override { return {mutation == Mutation::kLogIgnored ? end_ : truly_flushed()}; }
  void request_flush(coherence::Lsn lsn) override { wanted_ = lsn.value > wanted_ ? lsn.value : wanted_; }

  void set_late(bool late) { late_ = late; }
  void keep_records() { keeps_ = true; }
  bool is_asked() const { return wanted_ > truly_flushed(); }
  uint64_t truly_flushed() const { return late_ ? flushed_ : end_; }
  uint64_t end() const { return end_; }
  void flush(uint64_t to) { flushed_ = to > flushed_ ? to : flushed_; }
  // The node's process is gone: what its machine had not been given is lost.
  void lose_behind(uint64_t at) {
    while (!kept_.empty() && kept_.back().end > at) kept_.pop_back();
  }

  struct Kept {
    uint64_t end;  // position behind it
    std::vector<std::byte> bytes;
  };
  const std::vector<Kept>& kept() const { return kept_; }

 private:
  bool late_ = false, keeps_ = false;
  std::vector<Kept> kept_;
  uint64_t end_ = 0, wanted_ = 0, flushed_ = 0;
};

}  // namespace sim

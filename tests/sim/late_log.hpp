// LateLog: a node's log, flushed by Cluster::write_log() only.
#pragma once

#include <cstdint>
#include <span>

#include "bufmgr/log/log_sink.hpp"
#include "mutation.hpp"
#include "scheduler.hpp"

namespace sim {

class LateLog final : public bufmgr::LogSink {
 public:
  coherence::Lsn append(std::span<const std::byte> record) override {
    scheduler()->yield();
    end_ += record.size();
    return {end_};
  }
  coherence::Lsn flushed() override { return {mutation == Mutation::kLogIgnored ? end_ : truly_flushed()}; }
  void request_flush(coherence::Lsn lsn) override { wanted_ = lsn.value > wanted_ ? lsn.value : wanted_; }

  void set_late(bool late) { late_ = late; }
  bool is_asked() const { return wanted_ > truly_flushed(); }
  uint64_t truly_flushed() const { return late_ ? flushed_ : end_; }
  uint64_t end() const { return end_; }
  void flush(uint64_t to) { flushed_ = to; }

 private:
  bool late_ = false;
  uint64_t end_ = 0, wanted_ = 0, flushed_ = 0;
};

}  // namespace sim

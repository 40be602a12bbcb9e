// DdlRegion: Region::kDdl as one node sees it, for the parts of the channel: words, and where the slots lie.
//
// ddl_log.lost-says-no: Once the outcome of a batch was not known, the region is lost to this process, and the pool
//     is fenced (transport.unknown-cuts-off).  Nothing is read or written there any more, and what the channel is asked
//     gets the answer that lets no caller go on: no lock, no slot, no message, no answer yet, all others members.  A
//     number is 0.  A caller that waits looks at the fence, as in every wait.
#pragma once

#include "coherence/transport/memory.hpp"
#include "extension/engine/ddl/ddl_words.hpp"

namespace engine {

class DdlRegion {
 public:
  // `bytes` of pool memory at `at`, zeroed when the pool was made; all nodes give the same numbers.
  DdlRegion(coherence::Memory& memory, coherence::PoolAddress at, uint64_t bytes, uint32_t nodes_max,
            coherence::NodeId self);

  coherence::NodeId self() const { return self_; }
  uint32_t nodes_max() const { return nodes_max_; }
  int slots() const { return slots_; }
  uint32_t window_bytes() const { return window_bytes_; }
  coherence::PoolAddress at(uint64_t offset) const { return at_ + offset; }
  coherence::PoolAddress slot_at(int slot) const { return at_ + (kDdlSlots + uint64_t(slot) * slot_bytes_); }
  uint32_t window_offset() const { return kDdlSlotCells + nodes_max_ * kDdlCellBytes; }
  coherence::PoolAddress member_at(coherence::NodeId node) const { return at_ + (kDdlMembers + node.value * 8u); }

  // False: the region is lost (ddl_log.lost-says-no).
  [[nodiscard]] bool run(coherence::Batch& batch);
  bool lost() const { return lost_; }
  uint64_t load(coherence::PoolAddress at) { return known(lost_ ? coherence::Errc::kFenced : memory_.load(at)); }
  // The newest value, ordered behind the caller's own atomic before it: of two nodes that each change a word and then
  // read the other's with this, one sees the change.
  uint64_t load_newest(coherence::PoolAddress at) {
    return known(lost_ ? coherence::Errc::kFenced : memory_.faa(at, 0));
  }
  // For words with one writer at a time; a CAS stores them whole.
  void store(coherence::PoolAddress at, uint64_t value);

 private:
  uint64_t known(const coherence::Result<uint64_t>& value) {
    lost_ |= !value;
    return value ? *value : 0;
  }

  coherence::Memory& memory_;
  coherence::PoolAddress at_;
  uint32_t nodes_max_;
  uint32_t slot_bytes_, window_bytes_;
  int slots_;
  coherence::NodeId self_;
  bool lost_ = false;
};

}  // namespace engine

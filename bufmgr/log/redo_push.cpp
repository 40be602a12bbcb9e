#include "bufmgr/log/redo_push.hpp"

namespace bufmgr {

using coherence::Batch;
using coherence::Memory;
using coherence::Status;

namespace {

constexpr uint64_t kOneBatchMax = 64 << 10;  // bytes

}  // namespace

Status RedoPush::add_to(Memory& memory, Batch& batch) noexcept {
  for (; push_.upto > at_ + kOneBatchMax; at_ += kOneBatchMax) {
    Batch before(ring_.at().node());
    ring_.add_push(before, at_, at_ + kOneBatchMax);
    GCL_TRY(memory.run(before));
  }
  if (any()) ring_.add_push(batch, at_, push_.upto);
  at_ = push_.upto;
  return {};
}

Status RedoPush::run(Memory& memory) noexcept {
  if (any()) {
    Batch batch(ring_.at().node());
    GCL_TRY(add_to(memory, batch));
    GCL_TRY(memory.run(batch));
  }
  arrived();
  return {};
}

}  // namespace bufmgr

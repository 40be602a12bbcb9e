#include "coherence/transport/memory.hpp"

namespace coherence {

Status Memory::tell_unknown() noexcept {
  if (user_) user_->outcome_unknown();
  return Errc::kFenced;
}

Result<uint64_t> Memory::load(PoolAddress word) {
  Batch batch(word.node());
  const int i = batch.load(word);
  GCL_TRY(run(batch));
  return batch.op(i).old;
}

Result<uint64_t> Memory::cas(PoolAddress word, uint64_t expect, uint64_t desired) {
  Batch batch(word.node());
  const int i = batch.cas(word, expect, desired);
  GCL_TRY(run(batch));
  return batch.op(i).old;
}

Result<uint64_t> Memory::faa(PoolAddress word, uint64_t addend) {
  Batch batch(word.node());
  const int i = batch.faa(word, addend);
  GCL_TRY(run(batch));
  return batch.op(i).old;
}

}  // namespace coherence

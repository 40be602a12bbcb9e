#include "coherence/transport/memory.hpp"

namespace coherence {

uint64_t Memory::load(PoolAddress word) {
  Batch batch(word.node());
  int i = batch.load(word);
  post(batch);
  wait(batch);
  VERIFY(batch.known());
  return batch.op(i).old;
}

uint64_t Memory::cas(PoolAddress word, uint64_t expect, uint64_t desired) {
  Batch batch(word.node());
  int i = batch.cas(word, expect, desired);
  post(batch);
  wait(batch);
  VERIFY(batch.known());
  return batch.op(i).old;
}

uint64_t Memory::faa(PoolAddress word, uint64_t addend) {
  Batch batch(word.node());
  int i = batch.faa(word, addend);
  post(batch);
  wait(batch);
  VERIFY(batch.known());
  return batch.op(i).old;
}

}  // namespace coherence

#include "coherence/session/transition_batch.hpp"

#include "coherence/base/verify.hpp"
#include "coherence/latch/latch_word.hpp"
#include "coherence/session/write_back.hpp"

namespace coherence {
namespace {

// The writer's claim: a sharer's own copy is as new as any.
int add_claim(const NodeParts& node, Batch& batch, Line& line, NodeSet others) noexcept {
  const PageId page = line.page();
  const bool shares = fields(line).state.msi == MsiState::kShared;
  const NodeSet expected = shares ? others.with(node.id) : others;
  const int atomic = batch.cas(node.pool.latch_address(page), LatchWord::shared_by(expected).raw,
                               LatchWord::claimed_by(node.id, others).raw);
  if (!shares) batch.read(node.pool.page_address(page), node.frame_memory(line), kPageSize, OnlyIf::kCasSucceeded);
  return atomic;
}

// The bytes, then the word.
int add_giving_up(const NodeParts& node, Batch& batch, Line& line, const Actions& actions) noexcept {
  add_write_back(node, batch, line);
  const uint64_t addend = actions.post == Post::kRelease    ? LatchWord::drop_owner(node.id)
                          : actions.post == Post::kHandOver ? LatchWord::hand_over(node.id, actions.to)
                                                            : LatchWord::downgrade(node.id, actions.over);
  return batch.faa(node.pool.latch_address(line.page()), addend);
}

}  // namespace

int add_transition(const NodeParts& node, Batch& batch, Line& line, const Actions& actions) noexcept {
  const NodeId self = node.id;
  const PageId page = line.page();
  const PoolAddress word = node.pool.latch_address(page), bytes = node.pool.page_address(page);
  const Registered frame = node.frame_memory(line);
  int atomic = -1;
  switch (actions.post) {
    case Post::kAddReader:
      atomic = batch.faa(word, LatchWord::add_reader(self));
      batch.read(bytes, frame, kPageSize, OnlyIf::kNoOwner);
      return atomic;
    case Post::kProbe:
      atomic = batch.load(word);
      batch.read(bytes, frame, kPageSize, OnlyIf::kNoOwner);
      return atomic;
    case Post::kTake:
      atomic = batch.cas(word, LatchWord::free().raw, LatchWord::owned_by(self).raw);
      batch.read(bytes, frame, kPageSize, OnlyIf::kCasSucceeded);
      return atomic;
    case Post::kReadPage:
      batch.read(bytes, frame, kPageSize);
      return atomic;
    case Post::kUpgrade:
      return batch.cas(word, LatchWord::sole_reader(self).raw, LatchWord::owned_by(self).raw);
    case Post::kClaim:
      return add_claim(node, batch, line, actions.over);
    case Post::kTakeOver:
      atomic = batch.cas(word, actions.expects, LatchWord::claimed_by(self, actions.over).raw);
      if (fields(line).state.msi != MsiState::kShared) batch.read(bytes, frame, kPageSize, OnlyIf::kCasSucceeded);
      return atomic;
    case Post::kDropShare:
      return batch.faa(word, LatchWord::drop_reader(self));
    case Post::kRelease:
    case Post::kHandOver:
    case Post::kDowngrade:
      return add_giving_up(node, batch, line, actions);
    case Post::kNone:
      break;
  }
  VERIFY(false);
  return atomic;
}

}  // namespace coherence

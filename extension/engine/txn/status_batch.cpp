#include "extension/engine/txn/status_batch.hpp"

#include <utility>

namespace engine {

namespace {

// And its commit has no timestamp yet.
bool is_running(StatusWord word) { return word.state() == TxnState::kActive || word.state() == TxnState::kPrepared; }

}  // namespace

// The marks after the words, as read_word() has them.  Ids whose words have left their places, savepoints, and commits
// that are to be finished are left to status().
Status StatusBatch::ask() {
  const TxnWords& words = txns_.words();
  coherence::Batch batch(words.clock().node());
  const int count = std::exchange(count_, 0);
  if (count == 0) return {};
  for (int i = 0; i < count; ++i) batch.load(words.status(ids_[i]));
  int mark[coherence::kNodesMax];
  NodeSet marked;
  for (int i = 0; i < count; ++i) {
    const NodeId node = ids_[i].node();
    if (marked.has(node)) continue;
    marked = marked.with(node);
    mark[node.value] = batch.load(words.low_water(node));
  }
  GCL_TRY(txns_.run_unordered(batch));
  for (int i = 0; i < count; ++i) {
    const TxnId id = ids_[i];
    const StatusWord word{batch.op(i).old};
    const bool in_place = id.sequence() > batch.op(mark[id.node().value]).old;
    if (in_place && word.final())
      txns_.remember(id, word);
    else if (in_place && is_running(word))
      running_.push_back(id);
    else
      left_.push_back(id);
  }
  return {};
}

}  // namespace engine

#include "extension/engine/restart/statuses_of_copy.hpp"

namespace engine {

using coherence::Batch;

namespace {

Result<StatusesOfCopy::Node> read_marks(TxnSystem& txns, NodeId node) {
  const TxnWords& words = txns.words();
  Batch batch(words.clock().node());
  const int reserved = batch.load(words.reserved(node));
  const int low = batch.load(words.low_water(node));
  const int root = batch.load(words.overflow_root(node));
  const int frozen = batch.load(words.frozen(node));
  GCL_TRY(txns.session().memory().run(batch));
  return StatusesOfCopy::Node{.reserved = batch.op(reserved).old,
                              .frozen = batch.op(root).old == 0 ? batch.op(low).old : batch.op(frozen).old};
}

Status read_statuses(TxnSystem& txns, NodeId node, StatusesOfCopy::Node* to) {
  for (uint64_t sequence = to->frozen + 1; sequence <= to->reserved; ++sequence) {
    const auto status = txns.status_if_used(TxnId::make(node, sequence));
    if (!status) return status.error();
    if (!*status || (*status)->committed()) continue;
    if ((*status)->aborted())
      to->aborted.push_back(sequence);
    else
      to->in_doubt.push_back({sequence, (*status)->top.sequence()});
  }
  return {};
}

}  // namespace

Result<StatusesOfCopy> read_copy(TxnSystem& txns) {
  StatusesOfCopy copy;
  for (uint32_t n = 0; n < txns.words().nodes(); ++n) {
    const NodeId node{uint8_t(n)};
    auto marks = read_marks(txns, node);
    if (!marks) return marks.error();
    GCL_TRY(read_statuses(txns, node, &*marks));
    copy.nodes.push_back(marks.take());
  }
  return copy;
}

}  // namespace engine

#include "coherence/transport/verbs/chain.hpp"

#include <cstring>

#include "coherence/base/racy_copy.hpp"
#include "coherence/base/verify.hpp"

namespace coherence::verbs {
namespace {

constexpr uint32_t kWord = sizeof(uint64_t);

bool has_old(const Op& op) { return op.verb == Verb::kCas || op.verb == Verb::kFaa || op.verb == Verb::kLoad; }
bool changes(const Op& op) { return op.verb != Verb::kRead && op.verb != Verb::kLoad; }
bool brings(const Op& op) { return op.verb != Verb::kWrite; }
bool is_inline(const Op& op, uint32_t inline_bytes) { return op.verb == Verb::kWrite && op.bytes <= inline_bytes; }

// What it has of the buffer.
uint32_t buffer_bytes_of(const Op& op, uint32_t inline_bytes) {
  if (has_old(op)) return kWord;
  if (op.registered || is_inline(op, inline_bytes)) return 0;
  return (op.bytes + kWord - 1) / kWord * kWord;
}

ibv_wr_opcode opcode_of(Verb verb) {
  switch (verb) {
    case Verb::kRead:
    case Verb::kLoad:
      return IBV_WR_RDMA_READ;
    case Verb::kWrite:
      return IBV_WR_RDMA_WRITE;
    case Verb::kCas:
      return IBV_WR_ATOMIC_CMP_AND_SWP;
    case Verb::kFaa:
      return IBV_WR_ATOMIC_FETCH_AND_ADD;
  }
  VERIFY(false);
}

void set_place(ibv_send_wr* request, const Op& op, uint32_t key) {
  request->opcode = opcode_of(op.verb);
  if (op.verb != Verb::kCas && op.verb != Verb::kFaa) {
    request->wr.rdma.remote_addr = op.at.offset();
    request->wr.rdma.rkey = key;
    return;
  }
  request->wr.atomic.remote_addr = op.at.offset();
  request->wr.atomic.rkey = key;
  request->wr.atomic.compare_add = op.verb == Verb::kCas ? op.expect : op.operand;
  request->wr.atomic.swap = op.verb == Verb::kCas ? op.operand : 0;
}

}  // namespace

uint32_t Chain::requests(std::span<const Op> ops) noexcept { return ops.empty() ? 1 : uint32_t(ops.size()); }

uint32_t Chain::buffer_bytes(std::span<const Op> ops, uint32_t inline_bytes) noexcept {
  uint32_t bytes = 0;
  for (const Op& op : ops) bytes += buffer_bytes_of(op, inline_bytes);
  return bytes;
}

void Chain::build(std::span<const Op> ops, std::byte* buffer, const Keys& keys, uint64_t id) noexcept {
  VERIFY(ops.size() <= size_t(kBatchOpsMax));
  size_ = requests(ops);
  bool brought = false;  // by an operation in front, since the last fence
  for (uint32_t i = 0; i < ops.size(); i++) {
    const Op& op = ops[i];
    ibv_send_wr& request = requests_[i];
    request = {};
    set_place(&request, op, keys.memory_node);
    const uint32_t mine = buffer_bytes_of(op, keys.inline_bytes);
    std::byte* local = mine != 0 ? buffer : static_cast<std::byte*>(op.local);
    if (mine != 0 && op.verb == Verb::kWrite) racy_copy(buffer, op.local, op.bytes);
    buffer += mine;
    piece_[i] = {uint64_t(local), has_old(op) ? kWord : op.bytes, mine != 0 ? keys.buffer : keys.frames};
    request.sg_list = &piece_[i];
    request.num_sge = piece_[i].length != 0 ? 1 : 0;
    if (is_inline(op, keys.inline_bytes)) request.send_flags |= IBV_SEND_INLINE;
    if (changes(op) && brought) {  // verbs.ordered-by-table
      request.send_flags |= IBV_SEND_FENCE;
      brought = false;
    }
    brought |= brings(op);
    request.next = &request + 1;
  }
  if (ops.empty()) {  // a WRITE of nothing, which is complete in its turn
    requests_[0] = {};
    requests_[0].opcode = IBV_WR_RDMA_WRITE;
    requests_[0].wr.rdma.rkey = keys.memory_node;
  }
  ibv_send_wr& last = requests_[size_ - 1];
  last.next = nullptr;
  last.send_flags |= IBV_SEND_SIGNALED;
  for (uint32_t i = 0; i < size_; i++) requests_[i].wr_id = id;
}

void Chain::take_results(std::span<Op> ops, const std::byte* buffer, uint32_t inline_bytes) noexcept {
  for (Op& op : ops) {
    const uint32_t mine = buffer_bytes_of(op, inline_bytes);
    if (has_old(op)) memcpy(&op.old, buffer, sizeof op.old);
    if (op.verb == Verb::kRead && mine != 0) racy_copy(op.local, buffer, op.bytes);
    buffer += mine;
  }
}

}  // namespace coherence::verbs

#include "coherence/transport/tcp/memory/batch_frame.hpp"

#include <bit>
#include <cstring>

#include "coherence/base/byte_reader.hpp"
#include "coherence/base/racy_copy.hpp"
#include "coherence/base/verify.hpp"

namespace coherence::tcp {
namespace {

static_assert(std::endian::native == std::endian::little);

bool is_atomic(const Op& op) { return op.verb == Verb::kCas || op.verb == Verb::kFaa || op.verb == Verb::kLoad; }
uint32_t operands(Verb verb) { return verb == Verb::kCas ? 2 : verb == Verb::kFaa ? 1 : 0; }

// tcp.condition-has-its-atomic
bool condition_fits(const Op& op, int place, const Op& first) {
  if (op.only_if == OnlyIf::kAlways) return true;
  if (op.verb != Verb::kRead || place == 0) return false;
  return op.only_if == OnlyIf::kCasSucceeded ? first.verb == Verb::kCas : is_atomic(first);
}

struct Sums {
  uint64_t read = 0, written = 0, plain = 0;
};
Sums sums_of(std::span<const Op> ops) {
  Sums sums;
  for (const Op& op : ops) {
    if (op.verb == Verb::kRead) sums.read += op.bytes;
    if (op.verb == Verb::kWrite) sums.written += op.bytes;
    if (!is_atomic(op) && !op.registered) sums.plain += op.bytes;
  }
  return sums;
}

std::byte* put(std::byte* to, const void* from, size_t bytes) {
  memcpy(to, from, bytes);
  return to + bytes;
}

Errc wrong(Problem* problem, const char* what) { return problem->set(Errc::kCorrupt, "%s", what); }

// What the result of `ops` has beside its head, if their old values are right.
uint64_t result_body(std::span<const Op> ops) {
  uint64_t bytes = 0;
  for (const Op& op : ops) {
    if (is_atomic(op)) bytes += sizeof op.old;
    if (op.verb == Verb::kRead && wanted(op, ops[0])) bytes += op.bytes;
  }
  return bytes;
}

}  // namespace

bool can_travel(std::span<const Op> ops) noexcept {
  const Sums sums = sums_of(ops);
  for (size_t i = 0; i < ops.size(); i++)
    if (!condition_fits(ops[i], int(i), ops[0])) return false;
  return ops.size() <= size_t(kBatchOpsMax) && sums.plain <= kPlainBytesMax && sums.read <= kBatchBytesMax &&
         sums.written <= kBatchBytesMax;
}

uint32_t request_bytes(std::span<const Op> ops) noexcept {
  size_t bytes = sizeof(FrameHead);
  for (const Op& op : ops) {
    bytes += sizeof(FrameOp) + operands(op.verb) * sizeof(uint64_t);
    if (op.verb == Verb::kWrite) bytes += op.bytes;
  }
  return uint32_t(bytes);
}

uint32_t result_bytes_max(std::span<const Op> ops) noexcept {
  size_t bytes = sizeof(FrameHead);
  for (const Op& op : ops) bytes += is_atomic(op) ? sizeof op.old : op.verb == Verb::kRead ? op.bytes : 0;
  return uint32_t(bytes);
}

void encode_request(MemoryNodeId to, uint32_t tag, std::span<const Op> ops, std::byte* frame) noexcept {
  const FrameHead head{tag, to, uint8_t(ops.size()), 0};
  frame = put(frame, &head, sizeof head);
  for (const Op& op : ops) {
    const bool bytes = !is_atomic(op);
    const FrameOp one{uint8_t(op.verb), uint8_t(op.only_if), 0, bytes ? op.bytes : 0, op.at.raw};
    frame = put(frame, &one, sizeof one);
    if (op.verb == Verb::kCas) frame = put(frame, &op.expect, sizeof op.expect);
    if (operands(op.verb) != 0) frame = put(frame, &op.operand, sizeof op.operand);
  }
  for (const Op& op : ops) {
    if (op.verb != Verb::kWrite) continue;
    racy_copy(frame, op.local, op.bytes);  // of a page that others may be reading optimistically, or hinting
    frame += op.bytes;
  }
}

Status decode_result(std::span<const std::byte> frame, MemoryNodeId from, uint32_t tag, std::span<Op> ops,
                     Problem* problem) noexcept {
  FrameHead head;
  ByteReader reader(frame);
  if (!reader.take(&head, sizeof head) || head.reserved != 0) return wrong(problem, "a frame that is no result");
  if (head.operations != ops.size() || head.node != from || head.tag != tag)
    return wrong(problem, "a result of another batch");
  for (Op& op : ops)
    if (is_atomic(op) && !reader.take(&op.old, sizeof op.old)) return wrong(problem, "a result that is too short");
  if (frame.size() != sizeof head + result_body(ops)) return wrong(problem, "a result of another length");
  for (const Op& op : ops) {
    if (op.verb != Verb::kRead || !wanted(op, ops[0])) continue;
    racy_copy(op.local, reader.left().data(), op.bytes);
    reader.skip(op.bytes);
  }
  return {};
}

namespace {

// One operation of a request.
struct Taken {
  FrameOp op;
  uint64_t expect = 0, operand = 0;
};

// Null: it is one.
const char* take_op(ByteReader& reader, MemoryNodeId to, Taken* taken) {
  if (!reader.take(&taken->op, sizeof taken->op)) return "a request that is too short";
  const FrameOp& op = taken->op;
  if (op.verb > uint8_t(Verb::kLoad)) return "a verb that there is not";
  if (op.only_if > uint8_t(OnlyIf::kNoOwner)) return "a condition that there is not";
  if (op.reserved != 0) return "an operation of another format";
  if (PoolAddress{op.at}.node() != to) return "an operation on another memory node than its batch";
  const auto verb = Verb(op.verb);
  const bool bytes = verb == Verb::kRead || verb == Verb::kWrite;
  if (bytes ? op.bytes > kBatchBytesMax : op.bytes != 0) return "a length that no operation has";
  if (verb == Verb::kCas && !reader.take(&taken->expect, sizeof taken->expect)) return "a request that is too short";
  if (operands(verb) != 0 && !reader.take(&taken->operand, sizeof taken->operand)) return "a request that is too short";
  return nullptr;
}

// `local`: of a READ or a WRITE.
void add(Batch& batch, const Taken& taken, std::byte* local) {
  const PoolAddress at{taken.op.at};
  switch (Verb(taken.op.verb)) {
    case Verb::kRead:
      return batch.read(at, local, taken.op.bytes);
    case Verb::kWrite:
      return batch.write(at, local, taken.op.bytes);
    case Verb::kCas:
      return void(batch.cas(at, taken.expect, taken.operand));
    case Verb::kFaa:
      return void(batch.faa(at, taken.operand));
    case Verb::kLoad:
      return void(batch.load(at));
  }
}

}  // namespace

Status ServedBatch::decode(std::span<const std::byte> frame, Problem* problem) noexcept {
  FrameHead head;
  ByteReader reader(frame);
  batch_.reset();
  if (!reader.take(&head, sizeof head) || head.reserved != 0) return wrong(problem, "a frame that is no request");
  if (head.operations > kBatchOpsMax) return wrong(problem, "a batch of too many operations");
  Batch& batch = batch_.emplace(head.node);
  for (int i = 0; i < head.operations; i++) {
    Taken taken;
    if (const char* what = take_op(reader, head.node, &taken)) return wrong(problem, what);
    add(batch, taken, nullptr);
    batch.op(i).only_if = OnlyIf(taken.op.only_if);
    if (!condition_fits(batch.op(i), i, batch.op(0))) return wrong(problem, "a condition without its atomic");
  }
  uint32_t atomics = 0;
  for (int i = 0; i < batch.size(); i++) atomics += is_atomic(batch.op(i));
  uint64_t read = 0, written = 0;
  for (int i = 0; i < batch.size(); i++) {
    Op& op = batch.op(i);
    if (is_atomic(op)) continue;
    (op.verb == Verb::kRead ? read : written) += op.bytes;
    if (read > kBatchBytesMax || written > kBatchBytesMax) return wrong(problem, "a batch of too many bytes");
    if (op.verb == Verb::kRead) {
      op.local = result_.get() + sizeof(FrameHead) + atomics * sizeof op.old + (read - op.bytes);
    } else if (op.bytes <= reader.left().size()) {
      op.local = const_cast<std::byte*>(reader.left().data());  // NOLINT: a WRITE's source, which is only read
      reader.skip(op.bytes);
    } else {
      return wrong(problem, "a request that is too short");
    }
  }
  if (!reader.left().empty()) return wrong(problem, "a request that is too long");
  tag_ = head.tag;
  return {};
}

// READs that were not wanted left gaps.
std::span<const std::byte> ServedBatch::result() noexcept {
  const Batch& batch = *batch_;
  const FrameHead head{tag_, batch.to(), uint8_t(batch.size()), 0};
  std::byte* end = put(result_.get(), &head, sizeof head);
  for (int i = 0; i < batch.size(); i++)
    if (is_atomic(batch.op(i))) end = put(end, &batch.op(i).old, sizeof(uint64_t));
  for (int i = 0; i < batch.size(); i++) {
    const Op& op = batch.op(i);
    if (op.verb != Verb::kRead || !wanted(op, batch.op(0))) continue;
    if (op.local != end) memmove(end, op.local, op.bytes);
    end += op.bytes;
  }
  return {result_.get(), size_t(end - result_.get())};
}

}  // namespace coherence::tcp

// A batch and its results as bytes: the frames between a node's network worker and a memory node.
//
//   request:  head | for each operation: what, where, how many bytes; its operands | the bytes of the WRITEs
//   result:   head | the old values of CAS, FAA and LOAD | the bytes of the READs that were wanted
//
// Words are little-endian.  A frame has one meaning and one length: what is left over is as wrong as what is missing,
// and so is a byte that says nothing and is not 0.  Both sides know from the old values which READs were wanted.
//
// tcp.condition-has-its-atomic: a READ with a condition comes behind operation 0, an atomic; kCasSucceeded behind a
// CAS.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "coherence/base/problem.hpp"
#include "coherence/base/result.hpp"
#include "coherence/transport/memory.hpp"

namespace coherence::tcp {

// tcp.batch-bounded: so many bytes that are not Registered a batch READs and writes at most.  The longest that there is
// has a redo record of eight whole pages (66 KB), the next ones a part of a redo ring or a message of DDL (64 KB).
inline constexpr uint32_t kPlainBytesMax = 96 << 10;
// And bytes that a batch READs, or writes, with pages.
inline constexpr uint32_t kBatchBytesMax = kBatchOpsMax * kPageSize + kPlainBytesMax;

// Types of frames on a link.
inline constexpr uint16_t kRequestFrame = 1, kResultFrame = 2;

struct FrameHead {
  uint32_t tag;  // the request's, and so its result's
  MemoryNodeId node;
  uint8_t operations;
  uint16_t reserved;
};
struct FrameOp {
  uint8_t verb, only_if;
  uint16_t reserved;
  uint32_t bytes;  // READ, WRITE; else 0
  uint64_t at;
};
static_assert(sizeof(FrameHead) == 8 && sizeof(FrameOp) == 16);

inline constexpr uint32_t kRequestBytesMax =
    sizeof(FrameHead) + kBatchOpsMax * (sizeof(FrameOp) + 2 * sizeof(uint64_t)) + kBatchBytesMax;
inline constexpr uint32_t kResultBytesMax = sizeof(FrameHead) + kBatchOpsMax * sizeof(uint64_t) + kBatchBytesMax;

// A memory node sends other frames (member/) of so many bytes unacknowledged at most: what its window has beyond them
// is for results (tcp.answers-have-room).
inline constexpr uint32_t kOtherBytesMax = 32 << 10;

// The node's side.
// A batch within the bounds above, for which a condition has its atomic.  (A batch of ours is one.)
bool can_travel(std::span<const Op>) noexcept;
uint32_t request_bytes(std::span<const Op>) noexcept;
uint32_t result_bytes_max(std::span<const Op>) noexcept;  // if all READs are wanted
// REQUIRES: can_travel(), and room for request_bytes().
void encode_request(MemoryNodeId to, uint32_t tag, std::span<const Op>, std::byte* frame) noexcept;
// Sets the operations' old values, and the bytes that they READ.  kCorrupt: it is no result of them; then no byte is
// touched, and old values mean nothing.
Status decode_result(std::span<const std::byte> frame, MemoryNodeId from, uint32_t tag, std::span<Op>,
                     Problem*) noexcept;

// Of a memory node: a batch that it carries out.  READs bring what they READ right into the result's frame.
//
//   GCL_TRY(served.decode(frame, &problem));
//   ...check served.batch() against the region; memory.run(served.batch())...
//   send(served.result());
class ServedBatch {
 public:
  ServedBatch() : result_(new std::byte[kResultBytesMax]) {}
  // kCorrupt: it is no request.  The frame stays until the batch is carried out.
  Status decode(std::span<const std::byte> frame, Problem*) noexcept;
  Batch& batch() noexcept { return *batch_; }
  // REQUIRES: it was carried out.
  std::span<const std::byte> result() noexcept;

 private:
  std::optional<Batch> batch_;
  uint32_t tag_ = 0;
  const std::unique_ptr<std::byte[]> result_;
};

}  // namespace coherence::tcp

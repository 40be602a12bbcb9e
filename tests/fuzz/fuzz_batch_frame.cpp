// What a memory node takes for a batch, of any bytes, is one: it has that frame and no other, it can be carried out
// where its places are in the region, and its result is one for the node that posted it.  Other bytes are no result.
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "coherence/transport/shm/shm_memory.hpp"
#include "coherence/transport/tcp/memory/batch_frame.hpp"

namespace {

using namespace coherence;       // NOLINT
using namespace coherence::tcp;  // NOLINT

constexpr uint64_t kRegion = 1 << 16;

class Region final : public MemoryMap {
 public:
  std::byte* at(MemoryNodeId n) {
    set_base(n, bytes_.get());
    return bytes_.get();
  }

 private:
  std::byte* map_late(MemoryNodeId) noexcept override { abort(); }
  std::unique_ptr<std::byte[]> bytes_{new std::byte[kRegion]()};
};

bool in_region(const Batch& batch) {
  for (int i = 0; i < batch.size(); i++) {
    const Op& op = batch.op(i);
    const bool atomic = op.verb != Verb::kRead && op.verb != Verb::kWrite;
    if (op.bytes > kRegion || op.at.offset() > kRegion - op.bytes || (atomic && op.at.offset() % 8 != 0)) return false;
  }
  return batch.to().value < kMemoryNodesMax;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static Region region;
  static Counters counters{};
  static ServedBatch served;
  static std::vector<std::byte> local(kBatchBytesMax);
  static ShmMemory memory(region, counters);
  const std::span<const std::byte> frame(reinterpret_cast<const std::byte*>(data), size);
  Problem problem;
  if (!served.decode(frame, &problem)) {
    VERIFY(problem.text[0] != 0);
    return 0;
  }
  Batch& batch = served.batch();
  std::vector<Op> ops;
  for (int i = 0; i < batch.size(); i++) ops.push_back(batch.op(i));
  std::vector<std::byte> again(request_bytes(ops));
  uint32_t tag;
  memcpy(&tag, data, sizeof tag);
  VERIFY(again.size() == size);
  encode_request(batch.to(), tag, ops, again.data());
  VERIFY(memcmp(again.data(), data, size) == 0);

  size_t used = 0;
  for (Op& op : ops) {
    op.registered = true;
    if (op.verb == Verb::kRead) op.local = local.data() + used, used += op.bytes;
  }
  VERIFY(can_travel(ops));
  (void)decode_result(frame, batch.to(), tag, ops, &problem);  // a request for a result: whatever it says
  if (!in_region(batch)) return 0;
  region.at(batch.to());
  memory.post(batch);
  const auto result = served.result();
  VERIFY(result.size() <= result_bytes_max(ops));
  VERIFY(decode_result(result, batch.to(), tag, ops, &problem).ok());
  for (int i = 0; i < batch.size(); i++) VERIFY(ops[size_t(i)].old == batch.op(i).old);
  return 0;
}

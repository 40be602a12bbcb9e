#include "extension/engine/samples/sample_registry.hpp"

#include <type_traits>

namespace engine {

using coherence::Batch;
using coherence::NodeId;
using coherence::PoolAddress;

// A node's place: 8 bytes of version, then the sample.
constexpr uint64_t kSampleAt = 64;
constexpr int kReadsMax = 16;  // a writer is done in a microsecond

static_assert(std::is_trivially_copyable_v<Sample> && std::is_standard_layout_v<Sample>);

SampleRegistry::SampleRegistry(coherence::Memory& memory, bufmgr::RegionSpan region, uint32_t nodes, NodeId self)
    : memory_(memory), at_(region.at), stride_(region.bytes / nodes / 64 * 64), self_(self) {
  VERIFY(stride_ >= kSampleAt + sizeof(Sample));
}

void SampleRegistry::publish(const Sample& sample) {
  const PoolAddress at = place_of(self_);
  Batch batch(at.node());
  batch.faa(at, 1);
  batch.write(at + kSampleAt, &sample, sizeof sample);
  batch.faa(at, 1);
  (void)memory_.run(batch);  // what is not there was not said
}

void SampleRegistry::clear() {
  // A former process of the node may have ended in the middle of a publication.
  if (const auto version = memory_.load(place_of(self_)); version && (*version & 1))
    (void)memory_.faa(place_of(self_), 1);
  publish(Sample{});
}

bool SampleRegistry::read(NodeId node, uint64_t incarnation, Sample* to) {
  const PoolAddress at = place_of(node);
  for (int i = 0; i < kReadsMax; ++i) {
    Batch batch(at.node());
    const int before = batch.load(at);
    batch.read(at + kSampleAt, to, sizeof *to);
    const int after = batch.load(at);
    if (!memory_.run(batch)) return false;
    if (batch.op(before).old & 1 || batch.op(before).old != batch.op(after).old) continue;
    return to->format == Sample::kFormat && to->incarnation == incarnation;
  }
  return false;
}

}  // namespace engine

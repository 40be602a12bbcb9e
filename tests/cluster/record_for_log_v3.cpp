// record_for_log() as the version before had it: a gcl.so with this one in place of today's writes logs of format 3
// (bufmgr/log/record_v3.hpp).  What was packed it has as plain bytes.
#include <cstring>
#include <vector>

#include "bufmgr/log/packing.hpp"
#include "bufmgr/log/record.hpp"
#include "bufmgr/log/record_v3.hpp"

namespace bufmgr {
namespace {

class Writer {
 public:
  Writer(coherence::NodeId node, uint64_t sequence) {
    const RecordHeader header{
        .format = record_v3::kFormat, .node = node.value & 63u, .sequence = sequence & RecordHeader::kSequenceMax};
    put(&header, sizeof header);
  }
  void page(const RecordPage& page) {
    const uint8_t memory_node = page.page.node().value;
    number(page.page.number() << 1 | (memory_node != 0 ? 1 : 0));
    if (memory_node != 0) put(&memory_node, 1);
    number(page.version);
    number(page.steps);
    end_ = kPageSize + 1;
  }
  void step(const RecordStep& step) {
    constexpr uint32_t kLong = RecordStep::kLongLength;
    const auto kind = step.kind == RecordStep::kPacked ? RecordStep::kBytes : step.kind;
    const bool adjacent = step.offset == end_;
    const uint32_t code = step.bytes <= kLong ? step.bytes - 1u : kLong;
    const auto head = uint8_t(kind | (adjacent ? RecordStep::kAdjacent : 0) | code << RecordStep::kLengthShift);
    put(&head, 1);
    if (code == kLong) number(step.bytes - kLong - 1);
    if (!adjacent) put(&step.offset, sizeof step.offset);
    if (kind == RecordStep::kCopy) put(&step.source, sizeof step.source);
    if (kind == RecordStep::kBytes) bytes(step);
    end_ = step.end();
  }
  std::vector<std::byte> all;

 private:
  void bytes(const RecordStep& step) {
    if (step.kind == RecordStep::kBytes) return put(step.data.data(), step.bytes);
    all.resize(all.size() + step.bytes);
    unpack(step.data.data(), step.data.data() + step.data.size(), all.data() + all.size() - step.bytes, step.bytes);
  }
  void number(uint64_t value) {
    std::byte varint[kVarintMax];
    put(varint, size_t(put_varint(varint, value) - varint));
  }
  void put(const void* from, size_t bytes) {
    const auto* const first = static_cast<const std::byte*>(from);
    all.insert(all.end(), first, first + bytes);
  }

  uint32_t end_ = kPageSize + 1;  // of the step before, on its page
};

}  // namespace

std::span<std::byte> record_for_log(std::span<std::byte> framed, uint64_t sequence) noexcept {
  thread_local std::vector<std::byte> logged;
  RecordReader reader(framed.subspan(sizeof(RecordFrame)));
  Writer writer({uint8_t(reader.header().node)}, sequence);
  while (const RecordPage* page = reader.next_page()) {
    writer.page(*page);
    while (const RecordStep* step = reader.next_step()) writer.step(*step);
  }
  logged = std::move(writer.all);
  return logged;
}

}  // namespace bufmgr

#include "recovery/apply.hpp"

#include <cstring>

#include "bufmgr/log/packing.hpp"

namespace recovery {

using bufmgr::PageHeader;
using bufmgr::RecordPage;
using bufmgr::RecordReader;
using bufmgr::RecordStep;
using coherence::Errc;
using coherence::Problem;
using coherence::Result;

namespace {

unsigned long long wide(uint64_t value) { return value; }

// Walks all steps: whether they make sense.
bool sound(RecordReader reader) noexcept {
  while (reader.next_step() != nullptr) {
  }
  return !reader.corrupt();
}

void run(const RecordStep& step, std::byte* image) noexcept {
  std::byte* const to = image + step.offset;
  switch (step.kind) {
    case RecordStep::kBytes:
      std::memcpy(to, step.data.data(), step.bytes);
      break;
    case RecordStep::kPacked:
      VERIFY(bufmgr::unpack(step.data.data(), step.data.data() + step.data.size(), to, step.bytes) != nullptr);
      break;
    case RecordStep::kZero:
      std::memset(to, 0, step.bytes);
      break;
    case RecordStep::kCopy:
      std::memmove(to, image + step.source, step.bytes);
      break;
  }
}

}  // namespace

Result<Applied> apply(RecordReader reader, const RecordPage& page, std::byte* image, Problem* problem) noexcept {
  PageHeader header;
  std::memcpy(&header, image, sizeof header);
  if (header.version >= page.version) return Applied::kAlreadyThere;
  const unsigned memory_node = page.page.node().value, node = unsigned(reader.header().node);
  if (header.version + 1 != page.version)
    return problem->set(Errc::kNotFound,
                        "page %u:%llu has version %llu, and the next record of it that was found makes version %llu "
                        "(node %u, sequence %llu): the redo between them is missing",
                        memory_node, wide(page.page.number()), wide(header.version), wide(page.version), node,
                        wide(reader.header().sequence));
  if (!sound(reader))
    return problem->set(Errc::kCorrupt, "the record of node %u, sequence %llu, makes no sense at page %u:%llu", node,
                        wide(reader.header().sequence), memory_node, wide(page.page.number()));
  while (const RecordStep* step = reader.next_step()) run(*step, image);
  std::memcpy(image + offsetof(PageHeader, version), &page.version, sizeof page.version);
  return Applied::kChanged;
}

}  // namespace recovery

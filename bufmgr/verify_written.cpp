#include "bufmgr/verify_written.hpp"

#include <memory>

#include "bufmgr/log/record.hpp"
#include "bufmgr/mini_transaction.hpp"
#include "coherence/base/failure_report.hpp"
#include "coherence/base/verify.hpp"
#include "coherence/member/flight_recorder.hpp"
#include "coherence/trace/line_text.hpp"

namespace bufmgr {
namespace {

using coherence::Line;

unsigned long long wide(uint64_t number) { return number; }  // for %llu

// What is being looked at, for the VERIFY that finds that it is not so.
struct Looked final : coherence::FailureReport {
  explicit Looked(BufferPool& of, uint64_t end) : pool(of), upto(end) {}
  void tell(Out& out) const noexcept override {
    coherence::Text text;
    coherence::add(text.add("redo before ring position %llu is let go; ", wide(upto)), page);
    out.line(text.add(" has version %llu in the pool, and %llu in the record at %llu", wide(in_pool), wide(in_record),
                      wide(position)));
    for (uint32_t frame = 0; frame < pool.frames(); ++frame) {
      Line& line = pool.coherence_node().line(frame);
      if (line.page() == page || line.first_change() < upto) coherence::tell_line(out, pool.coherence_node(), line);
    }
  }
  BufferPool& pool;
  const uint64_t upto;
  PageId page;
  uint64_t in_pool = 0, in_record = 0, position = 0;
};

}  // namespace

void verify_written(BufferPool& pool, Session& session, uint64_t upto) {
  Looked looked(pool, upto);
  for (uint32_t frame = 0; frame < pool.frames(); ++frame)
    VERIFY(pool.coherence_node().line(frame).first_change() >= upto);

  coherence::Memory& memory = session.unordered_memory();
  const RedoRing& ring = pool.ring();
  auto reader = RingReader::open(memory, ring.at(), ring.data_bytes() + kRingHeaderBytes);
  if (!reader) return;  // this node has been cut off
  const auto buffer = std::make_unique<std::byte[]>(kMiniRecordMax);
  while (reader->position() < upto) {
    looked.position = reader->position();
    const auto record = reader->next(memory, {buffer.get(), kMiniRecordMax});
    if (!record && record.error() == coherence::Errc::kFenced) return;
    VERIFY(record.ok());
    RecordReader walk(*record);
    while (const RecordPage* changed = walk.next_page()) {
      looked.page = changed->page;
      looked.in_record = changed->version;
      coherence::Batch batch(changed->page.node());
      batch.read(pool.coherence_pool().page_address(changed->page), &looked.in_pool, sizeof looked.in_pool);
      if (!memory.run(batch)) return;
      VERIFY(looked.in_pool >= looked.in_record);
    }
  }
}

}  // namespace bufmgr

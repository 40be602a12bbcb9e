#include "recovery/ring_index.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <tuple>

#include "bufmgr/mini_transaction.hpp"

namespace recovery {

using bufmgr::PageId;
using bufmgr::RecordFrame;
using bufmgr::RecordPage;
using bufmgr::RecordReader;
using bufmgr::RingReader;
using coherence::Errc;
using coherence::Memory;
using coherence::PoolAddress;
using coherence::Problem;
using coherence::Result;
using coherence::Status;

namespace {

uint32_t record_bytes(const std::byte* framed) noexcept {
  RecordFrame frame;
  std::memcpy(&frame, framed, sizeof frame);
  return frame.bytes;
}

}  // namespace

Result<std::unique_ptr<RingIndex>> RingIndex::read(Memory& memory, PoolAddress ring, uint64_t bytes,
                                                   uint64_t incarnation, Problem* problem) {
  std::unique_ptr<RingIndex> index(new (std::nothrow) RingIndex);
  if (!index) return problem->set(Errc::kNoMemory, "no memory for an index of redo");
  auto reader = RingReader::open(memory, ring, bytes);
  if (reader.error() == Errc::kNotFound) return index;
  if (!reader) return problem->set(reader.error(), "the redo ring cannot be read");
  if (reader->incarnation() != incarnation) return index;
  index->tail_ = reader->position();
  index->bytes_.reset(new (std::nothrow) std::byte[reader->data_bytes()]);  // touched as far as there are records
  if (!index->bytes_)
    return problem->set(Errc::kNoMemory, "no memory for %llu bytes of redo",
                        static_cast<unsigned long long>(reader->data_bytes()));
  GCL_TRY(index->read_records(memory, *reader, problem));
  GCL_TRY(index->note_changes(problem));
  return index;
}

// log.reader-stops-at-hole
Status RingIndex::read_records(Memory& memory, RingReader& reader, Problem* problem) {
  const uint64_t tail = reader.position(), all = reader.data_bytes();
  while (end_ + sizeof(RecordFrame) <= all) {
    GCL_TRY(fill(memory, reader, tail, end_ + sizeof(RecordFrame)));
    const uint64_t framed = sizeof(RecordFrame) + record_bytes(bytes_.get() + end_);
    if (framed > bufmgr::kMiniRecordMax || end_ + framed > all) return {};
    GCL_TRY(fill(memory, reader, tail, end_ + framed));
    const std::span<const std::byte> bytes(bytes_.get() + end_, framed);
    const auto record = bufmgr::framed_record(bytes, tail + end_);
    if (record.error() == Errc::kNotFound) return {};
    if (!record) return bufmgr::refuse_format(bytes.subspan(sizeof(RecordFrame)), problem);
    end_ += framed;
  }
  return {};
}

Status RingIndex::fill(Memory& memory, RingReader& reader, uint64_t tail, uint64_t until) {
  while (filled_ < until) {
    const auto some = uint32_t(std::min<uint64_t>(RingReader::kReadMax, reader.data_bytes() - filled_));
    GCL_TRY(reader.read(memory, tail + filled_, bytes_.get() + filled_, some));
    filled_ += some;
  }
  return {};
}

// False: a record makes no sense.
template <class Each>
bool RingIndex::each_change(const Each& each) const {
  for (uint64_t at = 0; at < end_;) {
    const uint32_t bytes = record_bytes(bytes_.get() + at);
    at += sizeof(RecordFrame);
    RecordReader reader({bytes_.get() + at, bytes});
    while (const RecordPage* page = reader.next_page()) each(Change{page->page, page->version, at, bytes});
    if (reader.corrupt()) return false;
    at += bytes;
  }
  return true;
}

Status RingIndex::note_changes(Problem* problem) {
  size_t count = 0;
  if (!each_change([&](const Change&) { ++count; }))
    return problem->set(Errc::kCorrupt, "the redo ring has a record that makes no sense");
  changes_.reset(new (std::nothrow) Change[count]);
  if (!changes_) return problem->set(Errc::kNoMemory, "no memory for an index of %zu changes", count);
  (void)each_change([&](const Change& change) { changes_[count_++] = change; });
  std::sort(changes_.get(), changes_.get() + count_,
            [](const Change& a, const Change& b) { return std::tie(a.page, a.version) < std::tie(b.page, b.version); });
  return {};
}

std::span<const RingIndex::Change> RingIndex::from(PageId page) const {
  const auto all = changes();
  const auto first =
      std::partition_point(all.begin(), all.end(), [page](const Change& change) { return change.page < page; });
  return all.subspan(size_t(first - all.begin()));
}

std::span<const RingIndex::Change> RingIndex::of(PageId page) const {
  const auto behind = from(page);
  const auto end =
      std::partition_point(behind.begin(), behind.end(), [page](const Change& change) { return change.page == page; });
  return behind.first(size_t(end - behind.begin()));
}

}  // namespace recovery

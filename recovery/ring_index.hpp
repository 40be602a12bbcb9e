// RingIndex: what a dead node's ring has, in this process's own memory: its records up to the hole, and where each
// page's lie.  The ring does not change until the node is absent, so it is read once.
//
//   auto index = RingIndex::read(memory, ring, bytes, incarnation, &problem);
//   for (const RingIndex::Change& change : index->of(page)) { RecordReader reader(index->record(change)); ... }
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "bufmgr/log/record.hpp"
#include "bufmgr/log/redo_ring.hpp"
#include "coherence/base/problem.hpp"
#include "coherence/base/result.hpp"

namespace recovery {

class RingIndex {
 public:
  // That a record makes this version of the page.
  struct Change {
    bufmgr::PageId page;
    uint64_t version;
    uint64_t at;     // of the record
    uint32_t bytes;  // of the record
  };

  // Empty, if the incarnation did not come to open the ring.  kCorrupt, kIncompatible: a record cannot be read;
  // kNoMemory; kFenced (transport.unknown-cuts-off).
  static coherence::Result<std::unique_ptr<RingIndex>> read(coherence::Memory&, coherence::PoolAddress ring,
                                                            uint64_t bytes, uint64_t incarnation, coherence::Problem*);

  // By page and version.
  std::span<const Change> changes() const { return {changes_.get(), count_}; }
  std::span<const Change> of(bufmgr::PageId) const;
  // From the first change of that page, or of one behind it, on.
  std::span<const Change> from(bufmgr::PageId) const;
  std::span<const std::byte> record(const Change& change) const { return {bytes_.get() + change.at, change.bytes}; }
  // All records, each in its frame, one behind the other; the first one's sequence, and the one behind the last: the
  // hole's.  Both 0: the incarnation had not opened the ring.
  std::span<const std::byte> framed() const { return {bytes_.get(), end_}; }
  uint64_t first_sequence() const { return tail_; }
  uint64_t hole() const { return tail_ + end_; }

 private:
  coherence::Status read_records(coherence::Memory&, bufmgr::RingReader&, coherence::Problem*);
  coherence::Status fill(coherence::Memory&, bufmgr::RingReader&, uint64_t tail, uint64_t until);
  coherence::Status note_changes(coherence::Problem*);
  template <class Each>
  bool each_change(const Each&) const;

  std::unique_ptr<std::byte[]> bytes_;  // of the ring, from its tail on
  std::unique_ptr<Change[]> changes_;
  uint64_t tail_ = 0;
  uint64_t filled_ = 0;  // of bytes_
  uint64_t end_ = 0;     // of the records
  size_t count_ = 0;
};

}  // namespace recovery

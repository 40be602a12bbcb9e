// PoolView: a pool's files as they are at this moment, read by a process that is not in it.  For tools; a pool in use,
// a fenced one, or its durable copy.
//
// inspect.leaves-no-trace: it joins nothing, locks nothing, writes nothing and maps nothing: every look is a read of
// the file into memory of the caller's own.  So it keeps no process waiting, cannot be surprised by a file that is cut
// short or gone, and gives no memory to parts of the file that have none.
// inspect.trusts-nothing-unchecked: what it sees may change while it is read, and may be torn: its users believe no
// length and no place that they have not checked.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "coherence/base/ids.hpp"
#include "coherence/base/problem.hpp"
#include "coherence/base/result.hpp"
#include "coherence/latch/latch_word.hpp"
#include "coherence/pool/page_places.hpp"
#include "coherence/region/memory_file.hpp"
#include "coherence/region/node_table.hpp"
#include "coherence/region/pool_header.hpp"
#include "coherence/transport/memory.hpp"

namespace coherence {

class PoolView {
 public:
  // `path`: memory node 0's file.  kNotFound, kSystem (not allowed to read it), kCorrupt, kIncompatible.
  static Result<std::unique_ptr<PoolView>> open(const char* path, Problem*);

  const PoolHeader& header() const { return header_; }
  const NodeTable& table() const { return table_; }  // as it was at open()
  const std::string& path() const { return path_; }
  RegionExtent region(int index) const;
  uint64_t pages(MemoryNodeId n);
  bool has(PageId p) { return p.raw >> 48 == 0 && p.number() < pages(p.node()); }

  // False: the file has no such bytes, or cannot be read (any more).
  bool read(PoolAddress at, void* to, uint64_t bytes);
  std::optional<uint64_t> word(PoolAddress at);
  // REQUIRES: has(p).
  std::optional<LatchWord> latch(PageId p);
  bool page(PageId p, std::byte* to);  // kPageSize bytes

 private:
  struct Part {
    std::unique_ptr<File> file;
    PagePlaces places;
  };
  PoolView() = default;
  Part* part(MemoryNodeId n);  // opened at first use; null: there is none

  std::string path_;
  PoolHeader header_;
  NodeTable table_;
  std::unique_ptr<Part> part_[kMemoryNodesMax];
};

// The pool's memory for what reads it through batches.  A WRITE, CAS or FAA is a bug; what cannot be read is zeros.
class ViewMemory final : public Memory {
 public:
  explicit ViewMemory(PoolView& pool) : pool_(pool) {}
  using Memory::post;
  void post(Batch* const* batches, int count) override;
  void poll() override {}

 private:
  PoolView& pool_;
};

}  // namespace coherence

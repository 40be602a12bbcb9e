// SavedPages: single pages of a pool's durable copy, each believed only after its checksum was read
// (pool.copy-checksummed).  It keeps the files open, so a save that puts a new copy in their place changes nothing
// here.
//
//   auto pages = SavedPages::open("/data/pool.saved", &problem);
//   GCL_TRY((*pages)->read(page, bytes, &problem));
//
// One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "coherence/base/ids.hpp"
#include "coherence/base/problem.hpp"
#include "coherence/base/result.hpp"
#include "coherence/region/checksums.hpp"
#include "coherence/region/memory_file.hpp"

namespace coherence {

class SavedPages {
 public:
  // Of the last save, also while the copy says "in use".  Errors as outline_pool(), and kCorrupt: a file is missing or
  // is another copy's.
  static Result<std::unique_ptr<SavedPages>> open(const char* durable_path, Problem*);
  uint64_t pool_id() const { return header_->pool_id; }
  uint64_t saves() const { return header_->saves; }
  // kPageSize bytes; zeros, of a memory node that has come since.  kNotFound: the copy's memory node has no such page;
  // kCorrupt, with the page's name; kSystem.
  Status read(PageId, std::byte* to, Problem*);

 private:
  struct Part {
    Part(int fd) : file(fd) {}
    File file;
    uint64_t bytes = 0;
    PagePlaces places;
    std::unordered_map<uint32_t, std::unique_ptr<ChecksumPage>> checksums;  // those that were asked for
  };
  SavedPages() = default;
  Result<const ChecksumPage*> checksums_of(uint32_t k, uint64_t block, Problem*);

  char durable_path_[512] = "";
  std::unique_ptr<PoolHeader> header_;  // memory node 0's
  std::unique_ptr<Part> part_[kMemoryNodesMax];
};

}  // namespace coherence

// ServedPart: the file of one memory node that is not number 0, mapped, by the process that serves it to a pool over a
// network: found in memory, loaded from its copy, or made.
//
// region.one-server: Of a file there is one server at a time: it has the file locked.
// region.part-as-pool-says: A file that memory has lost is loaded if the pool is clean and its copy is of it as it is,
//     and from the copy of the pool's last save alone: under its name, or beside (pool.saved-beside).  A pool that is
//     in use, or whose last save failed, has later pages there, which no copy has: then the pool has to be made again.
//
//   auto part = ServedPart::open({.file = "/dev/shm/p.mem2", .saved = "/data/p"}, pool_header, &problem);
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "coherence/base/ids.hpp"
#include "coherence/base/problem.hpp"
#include "coherence/base/result.hpp"
#include "coherence/region/memory_file.hpp"
#include "coherence/region/part_keeper.hpp"
#include "coherence/region/pool_header.hpp"
#include "coherence/transport/shm/memory_map.hpp"

namespace coherence {

class ServedPart final : public MemoryMap, public PartKeeper {
 public:
  struct Spec {
    std::string file;          // "<pool>.mem<K>"
    std::string saved;         // the pool's durable path here; empty: no copy is kept
    uint64_t pages_bytes = 0;  // of a new memory node, which the pool does not have yet
  };
  // `pool`: what memory node 0's header says.  kBusy: another process serves it; kNotFound: there is no such file, and
  // no copy that may be loaded; kCorrupt, kIncompatible, kNoSpace, kSystem.
  static Result<std::unique_ptr<ServedPart>> open(const Spec&, const PoolHeader& pool, Problem*);
  // The number in the file's name; 0: memory node 0's, or of no memory node.
  static uint32_t number_of(const std::string& file) noexcept;
  ~ServedPart() override;

  const PoolHeader& part_header() const override { return *reinterpret_cast<PoolHeader*>(mapped(id_)); }
  Status write_copy(uint64_t saves, Problem*) override;
  Status place_copy(Problem*) override;
  MemoryNodeId id() const { return id_; }

 private:
  ServedPart(std::string pool, std::string saved, MemoryNodeId id);
  Status find(const Spec&, const PoolHeader& pool, Problem*);
  Status load(const PoolHeader& pool, Problem*);
  Status make(const Spec&, const PoolHeader& pool, Problem*);
  Status map(const PoolHeader& pool, Problem*);
  std::byte* map_late(MemoryNodeId) noexcept override;
  bool has_copy_in_place() const;

  const std::string pool_, saved_;  // memory node 0's names
  const MemoryNodeId id_;
  int fd_ = -1;
  uint64_t bytes_ = 0;
};

}  // namespace coherence

// The file of one memory node of a pool, mapped: what the daemon serves.
//
// memnode.one-server: Of a file there is one server at a time: it has the file locked.
#pragma once

#include <cstdint>
#include <memory>

#include "coherence/base/ids.hpp"
#include "coherence/region/memory_file.hpp"
#include "coherence/transport/shm/memory_map.hpp"

namespace memnode {

class ServedFile final : public coherence::MemoryMap {
 public:
  enum class Use : uint8_t { kServe, kLook };
  // kServe locks it.  kBusy: another process serves it; kCorrupt: it is no memory node's, or is not whole;
  // kIncompatible: of another format; kSystem.
  static coherence::Result<std::unique_ptr<ServedFile>> open(const char* path, Use, coherence::Problem*);
  ~ServedFile() override;

  coherence::MemoryNodeId id() const { return id_; }
  uint64_t bytes() const { return bytes_; }
  uint64_t pool_id() const { return pool_id_; }

 private:
  explicit ServedFile(int fd) : file_(fd) {}
  coherence::Status map(const char* path, Use, coherence::Problem*);
  std::byte* map_late(coherence::MemoryNodeId) noexcept override;

  coherence::File file_;
  coherence::MemoryNodeId id_;
  uint64_t bytes_ = 0, pool_id_ = 0;
};

}  // namespace memnode

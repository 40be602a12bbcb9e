// The file of one memory node: its name, its header, and moving bytes in and out of it.  Tools may ask for the name;
// all else is done under the pool's lock file, by region_file.hpp and LocalPool.
#pragma once

#include <cstddef>
#include <cstdint>

#include "coherence/base/result.hpp"
#include "coherence/region/pool_header.hpp"

namespace coherence {

// `<pool>` for memory node 0, `<pool>.mem<K>` for the others (pool.memory-node-zero-decides); `<...>.new` while it is
// being made.
struct MemoryPath {
  MemoryPath(const char* pool, uint32_t memory_node, bool unfinished = false);
  char text[560];
};

// A file descriptor that closes itself.
class File {
 public:
  explicit File(int fd) : fd_(fd) {}
  ~File();
  File(const File&) = delete;
  int fd() const { return fd_; }
  bool open() const { return fd_ >= 0; }

 private:
  int fd_;
};

// A new file of that size, all of it allocated.  kNoSpace, kSystem.
Status allocate_file(const char* path, uint64_t bytes, int* fd, Problem*);
// kCorrupt: too short to be one.
Status read_header(int fd, const char* path, PoolHeader*, Problem*);
// kCorrupt: the file is shorter than its header says; of a durable copy, it has another size.
Status check_whole(int fd, const PoolHeader&, bool saved, const char* path, Problem*);
// Whether this server reads such files.  kIncompatible.
Status check_format(const PoolHeader&, const char* path, Problem*);
// The same, and whether it is like the servers the pool was made for (no compatibility lines are like all).
Status check_header(const PoolHeader&, const char* compatibility, const char* path, Problem*);
// Whether it is memory node K's.  kCorrupt.
Status check_place(const PoolHeader&, uint32_t k, const char* path, Problem*);
// Whether memory node K's file is there, whole, and belongs to the pool whose memory node 0 says `first`; for
// `saved` ones also to the same durable copy (pool.saves-never-mixed).  kCorrupt, kSystem.
Status check_part(const char* pool, uint32_t k, const PoolHeader& first, bool saved, Problem*);
// So of all memory nodes but 0.
Status check_parts(const char* pool, const PoolHeader& first, bool saved, Problem*);
void unlink_parts(const char* pool, uint32_t memory_nodes);

inline constexpr uint64_t kFileChunk = 65536;  // bytes copied at a time, and the least that stays a hole
bool write_all(int fd, const std::byte* from, uint64_t bytes, uint64_t at);
bool read_all(int fd, std::byte* to, uint64_t bytes, uint64_t at);
// Where in the file the chunk lies that holds the next byte from `at` on that was ever written; at least `end`: none
// does.  A file system that cannot tell says of every byte that it was.
uint64_t next_written(int fd, uint64_t at, uint64_t end);
bool sync_directory_of(const char* path);

}  // namespace coherence

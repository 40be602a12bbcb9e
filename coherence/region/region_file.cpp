#include "coherence/region/region_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "coherence/pool/pool.hpp"
#include "coherence/region/checksums.hpp"
#include "coherence/region/memory_file.hpp"
#include "coherence/region/node_table.hpp"
#include "coherence/region/saved_file.hpp"

namespace coherence {
namespace {

constexpr uint64_t kAlign = 65536;
uint64_t aligned(uint64_t n) { return (n + kAlign - 1) / kAlign * kAlign; }

bool all_zero(const std::byte* p, uint64_t bytes) {
  return bytes == 0 || (p[0] == std::byte{0} && memcmp(p, p + 1, bytes - 1) == 0);
}

Errc failed(const char* what, const char* path, Problem* problem) {
  return problem->set(errno == ENOSPC   ? Errc::kNoSpace
                      : errno == ENOENT ? Errc::kNotFound
                                        : Errc::kSystem,
                      "cannot %s %s: %s", what, path, strerror(errno));
}

}  // namespace

void lay_out_region(const PoolSpec& spec, uint32_t k, PoolHeader* header) {
  uint64_t at = kPoolHeaderBytes;
  for (int i = 0; i < kRegionsMax; i++) {
    uint64_t bytes = k == 0 ? spec.region_bytes[i] : 0;
    if (i == kRegionPages && k != 0) bytes = spec.further_pages_bytes;
    if (i == kRegionNodeTable) bytes = k == 0 ? sizeof(NodeTable) : 0;
    if (i == kRegionLatchWords)
      bytes =
          PagePlaces::rows_for((k == 0 ? spec.region_bytes[kRegionPages] : spec.further_pages_bytes) / kPageSize) * 64;
    header->region[i] = {at, bytes};
    at = aligned(at + bytes);
  }
  header->memory_node = k;
  header->bytes = at;
}

Status make_region(const char* pool, const PoolHeader& header, Problem* problem) {
  const MemoryPath unfinished(pool, header.memory_node, true);
  int fd;
  const Status allocated = allocate_file(unfinished.text, header.bytes, &fd, problem);
  const File file(fd);
  GCL_TRY(allocated);
  return name_region(fd, unfinished.text, pool, header, problem);
}

Status name_region(int fd, const char* unnamed, const char* pool, const PoolHeader& header, Problem* problem) {
  if (!write_all(fd, reinterpret_cast<const std::byte*>(&header), sizeof header, 0))
    return problem->set(Errc::kSystem, "cannot write the header of %s: %s", unnamed, strerror(errno));
  if (rename(unnamed, MemoryPath(pool, header.memory_node).text) != 0)
    return problem->set(Errc::kSystem, "cannot rename %s: %s", unnamed, strerror(errno));
  return {};
}

Status check_region(const char* pool, uint32_t k, bool saved, PoolHeader* header, Problem* problem) {
  const MemoryPath path(pool, k);
  const File file(::open(path.text, O_RDONLY | O_CLOEXEC));
  if (!file.open()) return failed("open", path.text, problem);
  GCL_TRY(read_header(file.fd(), path.text, header, problem));
  GCL_TRY(check_format(*header, path.text, problem));
  if (saved) GCL_TRY(check_saved_header(file.fd(), *header, k, pool, problem));
  GCL_TRY(check_place(*header, k, path.text, problem));
  return check_whole(file.fd(), *header, saved, path.text, problem);
}

Status check_words_free(const char* pool, uint32_t k, Problem* problem) {
  const MemoryPath path(pool, k);
  const File file(::open(path.text, O_RDONLY | O_CLOEXEC));
  if (!file.open()) return failed("open pool", path.text, problem);
  const auto header = std::make_unique<PoolHeader>();
  GCL_TRY(read_header(file.fd(), path.text, header.get(), problem));
  const PagePlaces places = header->places();
  constexpr uint64_t kWords = kFileChunk / sizeof(LatchWord);
  const auto words = std::make_unique<uint64_t[]>(kWords);
  for (uint64_t from = 0; from < places.words(); from += kWords) {
    const uint64_t count = std::min(kWords, places.words() - from);
    if (!read_all(file.fd(), reinterpret_cast<std::byte*>(words.get()), count * sizeof(LatchWord),
                  places.words_at.offset() + from * sizeof(LatchWord)))
      return failed("read pool", path.text, problem);
    for (uint64_t i = 0; i < count; i++) {
      const uint64_t page = places.number_of_word(from + i);
      if (page < places.pages && LatchWord{words[i]} != LatchWord::free())
        return problem->set(Errc::kCorrupt, "page %llu of memory node %u is still owned: the pool is not saved",
                            static_cast<unsigned long long>(page), k);
    }
  }
  return {};
}

// What is zero stays a hole there; what was never touched in memory is not read, since a read would allocate memory.
Status save_region(const char* pool, uint32_t k, const char* to, Problem* problem) {
  const auto unsaved = [&](const char* what) {
    return problem->set(errno == ENOSPC ? Errc::kNoSpace : Errc::kSystem, "cannot %s pool file %s: %s", what, to,
                        strerror(errno));
  };
  const MemoryPath path(pool, k);
  const File memory(::open(path.text, O_RDONLY | O_CLOEXEC));
  if (!memory.open()) return problem->set(Errc::kSystem, "cannot open pool %s: %s", path.text, strerror(errno));
  const auto header = std::make_unique<PoolHeader>();
  GCL_TRY(read_header(memory.fd(), path.text, header.get(), problem));
  const File file(::open(to, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
  if (!file.open()) return unsaved("create");
  const uint64_t end = header->bytes;
  if (ftruncate(file.fd(), off_t(saved_bytes(end))) != 0) return unsaved("extend");
  const auto checksums = std::make_unique<ChecksumWriter>(file.fd(), *header);
  const auto chunk = std::make_unique<std::byte[]>(kFileChunk);  // through a mapping each 4 KB would be a page fault
  for (uint64_t at = 0; (at = next_written(memory.fd(), at, end)) < end; at += kFileChunk) {
    const uint64_t bytes = end - at < kFileChunk ? end - at : kFileChunk;
    if (!read_all(memory.fd(), chunk.get(), bytes, at))
      return problem->set(Errc::kSystem, "cannot read pool %s: %s", path.text, strerror(errno));
    if (all_zero(chunk.get(), bytes)) continue;
    if (!checksums->add(at, chunk.get(), bytes) || !write_all(file.fd(), chunk.get(), bytes, at))
      return unsaved("write");
  }
  if (!checksums->finish()) return unsaved("write");
  if (fsync(file.fd()) != 0) return unsaved("sync");
  return {};
}

Status mark_copy_in_use(const char* durable_path, Problem* problem) {
  const File file(::open(durable_path, O_RDWR | O_CLOEXEC));
  const PoolState state = PoolState::kInUse;
  if (file.open() && pwrite(file.fd(), &state, sizeof state, offsetof(PoolHeader, state)) == ssize_t(sizeof state) &&
      fsync(file.fd()) == 0)
    return {};
  return problem->set(Errc::kSystem, "cannot mark pool file %s: %s", durable_path, strerror(errno));
}

Status load_region(const char* durable_path, uint32_t k, uint64_t bytes, const char* pool, Damage* damage,
                   Problem* problem) {
  const MemoryPath saved(durable_path, k), unfinished(pool, k, true);
  const File from(::open(saved.text, O_RDONLY | O_CLOEXEC));
  if (!from.open()) return failed("open pool file", saved.text, problem);
  int fd = -1;
  const Status allocated = damage->bad == 0 ? allocate_file(unfinished.text, bytes, &fd, problem) : Status();
  const File to(fd);
  GCL_TRY(allocated);
  return read_saved(from.fd(), k, durable_path, to.fd(), damage, problem);
}

Status name_loaded(const char* pool, uint32_t k, Problem* problem) {
  const MemoryPath unfinished(pool, k, true), path(pool, k);
  return rename(unfinished.text, path.text) == 0 ? Status() : Status(failed("rename", unfinished.text, problem));
}

}  // namespace coherence

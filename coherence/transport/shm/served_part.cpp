#include "coherence/transport/shm/served_part.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "coherence/base/verify.hpp"
#include "coherence/region/damage.hpp"
#include "coherence/region/region_file.hpp"
#include "coherence/transport/shm/local_pool.hpp"

namespace coherence {
namespace {

constexpr const char* kSuffix = ".mem";

unsigned long long printed(uint64_t value) { return value; }

}  // namespace

uint32_t ServedPart::number_of(const std::string& file) noexcept {
  const size_t at = file.rfind(kSuffix);
  if (at == std::string::npos || at == 0) return 0;
  const std::string digits = file.substr(at + strlen(kSuffix));
  if (digits.empty() || digits.size() > 2 || digits.find_first_not_of("0123456789") != std::string::npos) return 0;
  const auto number = uint32_t(atoi(digits.c_str()));
  return number < uint32_t(kMemoryNodesMax) ? number : 0;
}

ServedPart::ServedPart(std::string pool, std::string saved, MemoryNodeId id)
    : pool_(std::move(pool)), saved_(std::move(saved)), id_(id) {}

ServedPart::~ServedPart() {
  if (bytes_ != 0) munmap(mapped(id_), bytes_);
  if (fd_ >= 0) close(fd_);
}

Result<std::unique_ptr<ServedPart>> ServedPart::open(const Spec& spec, const PoolHeader& pool, Problem* problem) {
  const uint32_t number = number_of(spec.file);
  if (number == 0)
    return problem->set(Errc::kIncompatible, "%s is not the name of a memory node's file: POOL.mem1, and so on",
                        spec.file.c_str());
  std::unique_ptr<ServedPart> part(
      new ServedPart(spec.file.substr(0, spec.file.rfind(kSuffix)), spec.saved, MemoryNodeId{uint8_t(number)}));
  GCL_TRY(part->find(spec, pool, problem));
  GCL_TRY(part->map(pool, problem));
  return part;
}

Status ServedPart::find(const Spec& spec, const PoolHeader& pool, Problem* problem) {
  if (access(spec.file.c_str(), F_OK) == 0) return {};
  const uint32_t count = pool.memory_nodes.load();
  if (id_.value < count) return load(pool, problem);
  if (id_.value > count)
    return problem->set(Errc::kIncompatible, "the pool has memory nodes 0 to %u: the next one is number %u", count - 1,
                        count);
  return make(spec, pool, problem);
}

// region.part-as-pool-says
Status ServedPart::load(const PoolHeader& pool, Problem* problem) {
  const MemoryPath path(pool_.c_str(), id_.value);
  if (saved_.empty()) return problem->set(Errc::kNotFound, "%s is gone, and there is no copy of it", path.text);
  if (pool.state.load() != PoolState::kClean)
    return problem->set(Errc::kNotFound,
                        "%s is gone, and the pool is in use, or was not saved when the last primary left: what was "
                        "there is in the copy and in the primaries' logs, and the pool has to be made again",
                        path.text);
  const LocalPool::NextCopy next(saved_.c_str());
  const auto header = std::make_unique<PoolHeader>();
  for (const char* copy : {saved_.c_str(), static_cast<const char*>(next.text)}) {
    Problem why;
    const Status whole = check_region(copy, id_.value, true, header.get(), &why);
    if (!whole && whole.error() != Errc::kNotFound) return problem->set(whole.error(), "%s", why.text);
    if (!whole || header->pool_id != pool.pool_id || header->saves != pool.saves) continue;
    const auto damage = std::make_unique<Damage>();
    GCL_TRY(load_region(copy, id_.value, header->bytes, pool_.c_str(), damage.get(), problem));
    if (damage->bad > 0) return damage->tell(copy, problem);
    return name_loaded(pool_.c_str(), id_.value, problem);
  }
  return problem->set(Errc::kNotFound, "%s is gone, and %s has no copy of the pool's save number %llu", path.text,
                      saved_.c_str(), printed(pool.saves));
}

Status ServedPart::make(const Spec& spec, const PoolHeader& pool, Problem* problem) {
  if (spec.pages_bytes == 0)
    return problem->set(Errc::kNotFound, "%s is not there, and how large a new memory node is to be was not said",
                        spec.file.c_str());
  const auto header = std::make_unique<PoolHeader>();
  memcpy(static_cast<void*>(header.get()), &pool, sizeof pool);
  const PoolSpec size{.further_pages_bytes = spec.pages_bytes};
  lay_out_region(size, id_.value, header.get());
  return make_region(pool_.c_str(), *header, problem);
}

Status ServedPart::map(const PoolHeader& pool, Problem* problem) {
  const MemoryPath path(pool_.c_str(), id_.value);
  fd_ = ::open(path.text, O_RDWR | O_CLOEXEC);
  if (fd_ < 0) return problem->set(Errc::kSystem, "cannot open %s: %s", path.text, strerror(errno));
  if (flock(fd_, LOCK_EX | LOCK_NB) != 0) {  // region.one-server
    if (errno == EWOULDBLOCK) return problem->set(Errc::kBusy, "another process serves %s", path.text);
    return problem->set(Errc::kSystem, "cannot lock %s: %s", path.text, strerror(errno));
  }
  const auto header = std::make_unique<PoolHeader>();
  GCL_TRY(check_region(pool_.c_str(), id_.value, false, header.get(), problem));
  if (header->pool_id != pool.pool_id)
    return problem->set(Errc::kCorrupt, "%s is of pool %016llx, and memory node 0 of pool %016llx", path.text,
                        printed(header->pool_id), printed(pool.pool_id));
  void* const at = mmap(nullptr, header->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (at == MAP_FAILED) return problem->set(Errc::kSystem, "cannot map %s: %s", path.text, strerror(errno));
  madvise(at, header->bytes, MADV_HUGEPAGE);  // where tmpfs permits
  bytes_ = header->bytes;
  set_base(id_, static_cast<std::byte*>(at));
  // Of a save that was the last one when it was made: it is none of the pool's yet (pool.counted-last).
  if (id_.value == pool.memory_nodes.load()) reinterpret_cast<PoolHeader*>(at)->saves = pool.saves;
  return {};
}

// The server has looked whose a batch is.
std::byte* ServedPart::map_late(MemoryNodeId) noexcept {
  VERIFY(false);
  return nullptr;
}

Status ServedPart::write_copy(uint64_t saves, Problem* problem) {
  GCL_TRY(check_words_free(pool_.c_str(), id_.value, problem));
  if (saved_.empty()) return problem->set(Errc::kNotFound, "it was not told where its part of the copy is to be");
  reinterpret_cast<PoolHeader*>(mapped(id_))->saves = saves;
  const LocalPool::NextCopy next(saved_.c_str());
  const MemoryPath to(next.text, id_.value);
  const Status saved = save_region(pool_.c_str(), id_.value, to.text, problem);
  if (!saved) unlink(to.text);  // the disk may be full
  GCL_TRY(saved);
  return sync_directory_of(to.text)
             ? Status()
             : problem->set(Errc::kSystem, "cannot sync the directory of %s: %s", to.text, strerror(errno));
}

Status ServedPart::place_copy(Problem* problem) {
  const LocalPool::NextCopy next(saved_.c_str());
  const MemoryPath from(next.text, id_.value), to(saved_.c_str(), id_.value);
  if (rename(from.text, to.text) != 0) {
    const int error = errno;
    if (error != ENOENT || !has_copy_in_place())
      return problem->set(Errc::kSystem, "cannot rename %s: %s", from.text, strerror(error));
  }
  if (sync_directory_of(to.text)) return {};  // also of a process that died when it had renamed it
  return problem->set(Errc::kSystem, "cannot sync the directory of %s: %s", to.text, strerror(errno));
}

bool ServedPart::has_copy_in_place() const {
  const auto there = std::make_unique<PoolHeader>();
  Problem ignored;
  return check_region(saved_.c_str(), id_.value, true, there.get(), &ignored) && there->saves == part_header().saves &&
         there->pool_id == part_header().pool_id;
}

}  // namespace coherence

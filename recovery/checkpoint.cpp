#include "recovery/checkpoint.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <span>
#include <type_traits>

#include "coherence/base/byte_reader.hpp"
#include "coherence/base/crc32c.hpp"
#include "coherence/region/since_save.hpp"
#include "recovery/restart_journal.hpp"

namespace recovery {

using bufmgr::PageId;
using coherence::BesideCopy;
using coherence::ByteReader;
using coherence::Errc;
using coherence::File;
using coherence::kPageSize;
using coherence::Problem;
using coherence::Result;
using coherence::Status;

namespace {

constexpr uint32_t kFormat = 1;  // of the file, with all that evidence has in it

// The file: this head, logs, rings, pages, and then for each evidence its node, how many bytes, and these.
struct Head {
  static constexpr uint64_t kMagic = 0x314b4843'4c4347;  // "GCLCHK1"
  uint64_t magic;
  uint32_t format;
  uint32_t checksum;  // CRC-32C of the file, with 0 here
  uint64_t bytes;     // of the file
  uint64_t pool_id, saves, number, time_us;
  uint64_t logs, rings, pages, evidence;
};
static_assert(sizeof(Head) == 88);

Errc file_error(const char* what, const char* path, Problem* problem) {
  const bool full = errno == ENOSPC || errno == EDQUOT;
  return problem->set(full ? Errc::kNoSpace : Errc::kSystem, "cannot %s %s: %s", what, path, strerror(errno));
}

template <class Item>
void put(std::vector<std::byte>* to, const Item* items, size_t count) {
  static_assert(std::is_trivially_copyable_v<Item> && sizeof(Item) % 8 == 0);
  const auto bytes = std::as_bytes(std::span(items, count));
  to->insert(to->end(), bytes.begin(), bytes.end());
}

bool take_evidence(ByteReader* front, uint64_t count, std::vector<Checkpoint::Evidence>* to) {
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t head[2];  // whose, and how many bytes
    if (!front->take(head, sizeof head)) return false;
    Checkpoint::Evidence one{head[0], {}};
    if (!front->take(&one.bytes, head[1])) return false;
    to->push_back(std::move(one));
  }
  return front->left().empty();
}

uint32_t checksum_of(std::span<std::byte> file) {
  constexpr uint32_t kNothing = 0;
  memcpy(&file[offsetof(Head, checksum)], &kNothing, sizeof kNothing);
  return coherence::crc32c(0, file.data(), file.size());
}

// kNotFound.
Status read_file(const char* path, std::vector<std::byte>* to, Problem* problem) {
  const File file(open(path, O_RDONLY | O_CLOEXEC));
  struct stat s;
  if (!file.open() || fstat(file.fd(), &s) != 0)
    return errno == ENOENT ? Errc::kNotFound : file_error("open", path, problem);
  to->resize(size_t(s.st_size));
  return coherence::read_all(file.fd(), to->data(), to->size(), 0) ? Status()
                                                                   : Status(file_error("read", path, problem));
}

}  // namespace

bool Checkpoint::has_ring(const Death& death) const {
  return std::ranges::any_of(rings, [&](const Ring& ring) {
    return ring.node == death.node.value && ring.incarnation == death.incarnation && ring.at == death.ring_bytes();
  });
}

Result<Checkpoint> read_checkpoint(const char* durable_path, uint64_t pool_id, uint64_t saves, Problem* problem) {
  const BesideCopy path(durable_path, BesideCopy::kCheckpoint);
  std::vector<std::byte> file;
  const Status read = read_file(path.text, &file, problem);
  if (read.error() == Errc::kNotFound) return Checkpoint{};
  GCL_TRY(read);
  Head head{};
  if (file.size() >= sizeof head) memcpy(&head, file.data(), sizeof head);
  if (head.magic == Head::kMagic && head.format > kFormat)
    return problem->set(Errc::kIncompatible,
                        "%s has format %u, and format %u is read here; a later version of gcl wrote it: use that one",
                        path.text, head.format, kFormat);
  if (head.magic != Head::kMagic || head.format != kFormat || head.bytes != file.size() ||
      checksum_of(file) != head.checksum)
    return problem->set(Errc::kCorrupt, "%s is damaged", path.text);
  if (head.pool_id != pool_id || head.saves != saves) return Checkpoint{};
  Checkpoint found{.pool_id = head.pool_id, .saves = head.saves, .number = head.number, .time_us = head.time_us};
  ByteReader front(std::span<const std::byte>(file).subspan(sizeof head));
  if (!front.take(&found.logs, head.logs) || !front.take(&found.rings, head.rings) ||
      !front.take(&found.pages, head.pages) || !take_evidence(&front, head.evidence, &found.evidence))
    return problem->set(Errc::kCorrupt, "%s makes no sense", path.text);
  return found;
}

Status write_checkpoint(const char* durable_path, const Checkpoint& made, Problem* problem) {
  std::vector<std::byte> file(sizeof(Head));
  put(&file, made.logs.data(), made.logs.size());
  put(&file, made.rings.data(), made.rings.size());
  put(&file, made.pages.data(), made.pages.size());
  for (const Checkpoint::Evidence& one : made.evidence) {
    const uint64_t head[] = {one.node, one.bytes.size()};
    put(&file, head, 2);
    file.insert(file.end(), one.bytes.begin(), one.bytes.end());
  }
  Head head{Head::kMagic,      kFormat,           0,
            file.size(),       made.pool_id,      made.saves,
            made.number,       made.time_us,      made.logs.size(),
            made.rings.size(), made.pages.size(), made.evidence.size()};
  memcpy(file.data(), &head, sizeof head);
  head.checksum = checksum_of(file);
  memcpy(file.data(), &head, sizeof head);
  const BesideCopy path(durable_path, BesideCopy::kCheckpoint);
  char next[sizeof path.text + 8];
  snprintf(next, sizeof next, "%s.next", path.text);
  {
    const File to(open(next, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    if (!to.open()) return file_error("create", next, problem);
    if (!coherence::write_all(to.fd(), file.data(), file.size(), 0) || fsync(to.fd()) != 0) {
      const Errc error = file_error("write", next, problem);
      unlink(next);
      return error;
    }
  }
  if (rename(next, path.text) != 0) return file_error("rename", next, problem);
  if (!coherence::sync_directory_of(path.text)) return file_error("sync the directory of", path.text, problem);
  return {};
}

// --- images ----------------------------------------------------------------------------------------------------------

DeltaPages::DeltaPages(int fd, const char* durable_path) : file_(fd) {
  snprintf(path_, sizeof path_, "%s", BesideCopy(durable_path, BesideCopy::kDelta).text);
}

Result<std::unique_ptr<DeltaPages>> DeltaPages::open(const char* durable_path,
                                                     const std::vector<Checkpoint::Page>& pages, Problem* problem) {
  const BesideCopy path(durable_path, BesideCopy::kDelta);
  const int create = pages.empty() ? O_CREAT | O_TRUNC : 0;  // what a former save's has left is not needed
  std::unique_ptr<DeltaPages> delta(new DeltaPages(::open(path.text, O_RDWR | O_CLOEXEC | create, 0600), durable_path));
  if (!delta->file_.open())
    return errno == ENOENT ? problem->set(Errc::kNotFound, "there is no %s, which the checkpoint needs", path.text)
                           : file_error("open", path.text, problem);
  if (!coherence::sync_directory_of(path.text))  // checkpoint.name-durable-first
    return file_error("sync the directory of", path.text, problem);
  for (const Checkpoint::Page& one : pages) delta->at_[one.page.raw] = {one.slot, one.checksum};
  delta->find_free();
  return delta;
}

// checkpoint.replaced-as-whole
void DeltaPages::find_free() {
  std::vector<bool> used;
  for (const auto& [page, place] : at_) {
    if (place.slot >= used.size()) used.resize(size_t(place.slot) + 1);
    used[place.slot] = true;
  }
  next_ = uint32_t(used.size());
  free_.clear();
  for (uint32_t slot = next_; slot-- > 0;)
    if (!used[slot]) free_.push_back(slot);
}

Result<bool> DeltaPages::read(PageId page, std::byte* to, Problem* problem) {
  const auto at = at_.find(page.raw);
  if (at == at_.end()) return false;
  const bool read = coherence::read_all(file_.fd(), to, kPageSize, at->second.slot * uint64_t{kPageSize});
  if (!read) return file_error("read", path_, problem);
  const uint32_t calculated = coherence::crc32c(0, to, kPageSize);
  if (calculated == at->second.checksum) return true;
  return problem->set(
      Errc::kCorrupt,
      "page verification failed, calculated checksum %u but expected %u: page %llu of memory node %u in %s", calculated,
      at->second.checksum, static_cast<unsigned long long>(page.number()), unsigned(page.node().value), path_);
}

Status DeltaPages::write(PageId page, const std::byte* image, Problem* problem) {
  const uint32_t slot = free_.empty() ? next_++ : free_.back();
  if (!free_.empty()) free_.pop_back();
  if (!coherence::write_all(file_.fd(), image, kPageSize, slot * uint64_t{kPageSize}))
    return file_error("write", path_, problem);
  at_[page.raw] = {slot, coherence::crc32c(0, image, kPageSize)};
  return {};
}

Result<std::vector<Checkpoint::Page>> DeltaPages::finish(Problem* problem) {
  if (fsync(file_.fd()) != 0 || !coherence::sync_directory_of(path_)) return file_error("sync", path_, problem);
  std::vector<Checkpoint::Page> pages;
  pages.reserve(at_.size());
  for (const auto& [page, place] : at_) pages.push_back({PageId{page}, place.slot, place.checksum});
  find_free();
  return pages;
}

}  // namespace recovery

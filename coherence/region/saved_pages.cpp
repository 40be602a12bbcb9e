#include "coherence/region/saved_pages.hpp"

#include <fcntl.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "coherence/region/saved_file.hpp"

namespace coherence {
namespace {

Errc saved_page_error(const char* what, const MemoryPath& path, Problem* problem) {
  return problem->set(errno == ENOENT ? Errc::kNotFound : Errc::kSystem, "cannot %s pool file %s: %s", what, path.text,
                      strerror(errno));
}

}  // namespace

Result<std::unique_ptr<SavedPages>> SavedPages::open(const char* durable_path, Problem* problem) {
  std::unique_ptr<SavedPages> pages(new SavedPages);
  pages->header_ = std::make_unique<PoolHeader>();
  snprintf(pages->durable_path_, sizeof pages->durable_path_, "%s", durable_path);
  const PoolHeader& first = *pages->header_;
  for (uint32_t k = 0; k == 0 || k < first.memory_nodes.load(); k++) {
    const MemoryPath path(durable_path, k);
    auto part = std::make_unique<Part>(::open(path.text, O_RDONLY | O_CLOEXEC));
    if (!part->file.open()) return saved_page_error("open", path, problem);
    PoolHeader own;
    if (k == 0) GCL_TRY(read_saved_header(part->file.fd(), durable_path, pages->header_.get(), problem));
    GCL_TRY(read_header(part->file.fd(), path.text, &own, problem));
    GCL_TRY(check_saved_header(part->file.fd(), own, k, durable_path, problem));
    GCL_TRY(check_whole(part->file.fd(), own, true, path.text, problem));
    if (own.pool_id != first.pool_id || own.saves != first.saves || own.memory_node != k)
      return problem->set(Errc::kCorrupt, "%s is not of the same copy as %s", path.text, durable_path);
    part->bytes = own.bytes;
    part->places = own.places();
    pages->part_[k] = std::move(part);
  }
  return pages;
}

Result<const ChecksumPage*> SavedPages::checksums_of(uint32_t k, uint64_t block, Problem* problem) {
  Part& part = *part_[k];
  const auto number = uint32_t(block / ChecksumPage::kBlocks);
  auto& page = part.checksums[number];
  if (page) return page.get();
  auto read = std::make_unique<ChecksumPage>();
  errno = 0;
  if (!read_checksums(part.file.fd(), part.bytes, {pool_id(), saves(), k, number}, read.get())) {
    const MemoryPath path(durable_path_, k);
    if (errno != 0 && errno != ENODATA) return saved_page_error("read", path, problem);
    return problem->set(Errc::kCorrupt, "the checksums of pool file %s are damaged", path.text);
  }
  page = std::move(read);
  return page.get();
}

Status SavedPages::read(PageId page, std::byte* to, Problem* problem) {
  const uint32_t k = page.node().value;
  if (k >= kMemoryNodesMax) return Errc::kNotFound;
  if (!part_[k]) {
    memset(to, 0, kPageSize);
    return {};
  }
  Part& part = *part_[k];
  if (page.number() >= part.places.pages) return Errc::kNotFound;
  const uint64_t at = part.places.page(page.number()).offset(), block = at / kBlockBytes;
  const auto checksums = checksums_of(k, block, problem);
  if (!checksums) return checksums.error();
  if (!read_all(part.file.fd(), to, kPageSize, at))
    return saved_page_error("read", MemoryPath(durable_path_, k), problem);
  const uint32_t calculated = block_checksum(block, to),
                 expected = (*checksums)->of_block[block % ChecksumPage::kBlocks];
  if (calculated == expected) return {};
  return problem->set(Errc::kCorrupt,
                      "page %llu of memory node %u of %s is damaged: calculated checksum %u but expected %u",
                      static_cast<unsigned long long>(page.number()), k, durable_path_, calculated, expected);
}

}  // namespace coherence

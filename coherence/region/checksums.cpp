#include "coherence/region/checksums.hpp"

#include <cstring>

#include "coherence/base/crc32c.hpp"
#include "coherence/region/memory_file.hpp"
#include "coherence/region/pool_header.hpp"

namespace coherence {
namespace {

constexpr uint64_t kPerPage = ChecksumPage::kBlocks;

uint64_t divided_up(uint64_t n, uint64_t by) { return (n + by - 1) / by; }

// The first block has the header, and is saved as "clean": that it is in use is written there later.
static_assert(sizeof(PoolHeader) <= kBlockBytes);
uint32_t checksum_of(uint64_t block, const std::byte* bytes) noexcept {
  if (block != 0) return crc32c(0, bytes, kBlockBytes);
  PoolState state;
  constexpr size_t kAt = offsetof(PoolHeader, state);
  memcpy(&state, bytes + kAt, sizeof state);
  if (state == PoolState::kInUse) state = PoolState::kClean;
  const uint32_t before = crc32c(crc32c(0, bytes, kAt), &state, sizeof state);
  return crc32c(before, bytes + kAt + sizeof state, kBlockBytes - kAt - sizeof state);
}

uint32_t checksum_of_zeros() noexcept {
  static constexpr std::byte kZeros[kBlockBytes] = {};
  static const uint32_t checksum = crc32c(0, kZeros, sizeof kZeros);
  return checksum;
}

// Of a page of checksums, with that name in the place of its own.
uint32_t checksum_of(const ChecksumPage& page, const ChecksumPage::Name& name) noexcept {
  constexpr uint32_t kNothing = 0;
  static_assert(offsetof(ChecksumPage, of_block) == sizeof name + sizeof kNothing);
  const uint32_t head = crc32c(crc32c(0, &name, sizeof name), &kNothing, sizeof kNothing);
  return crc32c(head, page.of_block, sizeof page.of_block);
}

}  // namespace

uint64_t saved_bytes(uint64_t bytes) noexcept {
  const uint64_t blocks = divided_up(bytes, kBlockBytes);
  return (blocks + divided_up(blocks, kPerPage)) * kBlockBytes;
}

uint64_t bytes_of_saved(uint64_t saved) noexcept {
  const uint64_t all = saved / kBlockBytes;
  const uint64_t bytes = (all - divided_up(all, kPerPage + 1)) * kBlockBytes;
  return saved_bytes(bytes) == saved ? bytes : 0;
}

uint32_t block_checksum(uint64_t block, const std::byte* bytes) noexcept { return checksum_of(block, bytes); }

bool read_checksums(int fd, uint64_t bytes, const ChecksumPage::Name& name, ChecksumPage* to) noexcept {
  return read_all(fd, reinterpret_cast<std::byte*>(to), sizeof *to, bytes + name.number * kBlockBytes) &&
         checksum_of(*to, name) == to->checksum;
}

ChecksumWriter::ChecksumWriter(int fd, const PoolHeader& header) noexcept : fd_(fd), bytes_(header.bytes) {
  page_.name = {header.pool_id, header.saves, header.memory_node, 0};
  begin_page(0);
}

void ChecksumWriter::begin_page(uint32_t number) noexcept {
  page_.name.number = number;
  for (uint32_t& checksum : page_.of_block) checksum = checksum_of_zeros();
}

bool ChecksumWriter::end_page() noexcept {
  page_.checksum = checksum_of(page_, page_.name);
  return write_all(fd_, reinterpret_cast<const std::byte*>(&page_), sizeof page_,
                   bytes_ + page_.name.number * kBlockBytes);
}

bool ChecksumWriter::add(uint64_t at, const std::byte* bytes, uint64_t count) noexcept {
  for (uint64_t done = 0; done < count; done += kBlockBytes) {
    const uint64_t block = (at + done) / kBlockBytes;
    for (; page_.name.number < block / kPerPage; begin_page(page_.name.number + 1))
      if (!end_page()) return false;
    page_.of_block[block % kPerPage] = checksum_of(block, bytes + done);
  }
  return true;
}

bool ChecksumWriter::finish() noexcept {
  const uint64_t pages = divided_up(bytes_ / kBlockBytes, kPerPage);
  for (;; begin_page(page_.name.number + 1)) {
    if (!end_page()) return false;
    if (page_.name.number + 1 == pages) return true;
  }
}

ChecksumReader::ChecksumReader(int fd, uint32_t memory_node, uint64_t bytes, Damage& damage) noexcept
    : fd_(fd), memory_node_(memory_node), bytes_(bytes), damage_(damage) {}

bool ChecksumReader::read_page(uint32_t number) noexcept {
  const uint64_t at = bytes_ + number * kBlockBytes;
  if (!read_all(fd_, reinterpret_cast<std::byte*>(&page_), sizeof page_, at)) return false;
  page_number_ = number;
  ChecksumPage::Name name = first_sound_ ? name_ : page_.name;
  if (first_sound_) name.number = number;
  const uint32_t calculated = checksum_of(page_, name);
  sound_ = calculated == page_.checksum;
  if (number == 0 && sound_) name_ = name, first_sound_ = true;
  damage_.checked++;
  if (!sound_) note(at / kBlockBytes, calculated, page_.checksum);
  return true;
}

void ChecksumReader::note(uint64_t block, uint32_t calculated, uint32_t expected) noexcept {
  Damage::Block bad{memory_node_, block, calculated, expected, nullptr, 0};
  const uint64_t at = block * kBlockBytes;
  const uint64_t pages_at = places_.pages_at.offset();
  if (at >= bytes_)
    bad.part = "the checksums";
  else if (at < kPoolHeaderBytes)
    bad.part = "the header";
  else if (!header_sound_ || at < pages_at || (at - pages_at) / kBlockBytes >= places_.pages)
    bad.part = "the tables";
  else
    bad.page = (at - pages_at) / kBlockBytes;
  damage_.add(bad);
}

bool ChecksumReader::check_block(uint64_t block, uint32_t calculated) noexcept {
  if (block / kPerPage != page_number_ && !read_page(uint32_t(block / kPerPage))) return false;
  next_ = block + 1;
  if (!sound_) {
    damage_.unchecked++;
    return true;
  }
  damage_.checked++;
  const uint32_t expected = page_.of_block[block % kPerPage];
  if (calculated != expected) note(block, calculated, expected);
  return true;
}

bool ChecksumReader::skip_to(uint64_t block) noexcept {
  while (next_ < block)
    if (!check_block(next_, checksum_of_zeros())) return false;
  return true;
}

bool ChecksumReader::check(uint64_t at, const std::byte* bytes, uint64_t count) noexcept {
  if (!skip_to(at / kBlockBytes)) return false;
  for (uint64_t done = 0; done < count; done += kBlockBytes) {
    const uint64_t block = (at + done) / kBlockBytes;
    const uint64_t bad = damage_.bad;
    if (!check_block(block, checksum_of(block, bytes + done))) return false;
    if (block == 0 && sound_ && damage_.bad == bad) {
      header_sound_ = true;
      places_ = reinterpret_cast<const PoolHeader*>(bytes)->places();
    }
  }
  return true;
}

bool ChecksumReader::finish() noexcept { return skip_to(bytes_ / kBlockBytes); }

}  // namespace coherence

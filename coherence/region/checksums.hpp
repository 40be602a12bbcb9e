// The checksums in the durable copy of a pool (pool.copy-checksummed): how they lie in its files, how a save writes
// them and how a load checks them.
//
//   a file of the copy:  the bytes of the memory node's file | one ChecksumPage for each 2,041 blocks of them
//
// A block has 8 KB, as a page has, and each page is one block.
#pragma once

#include <cstddef>
#include <cstdint>

#include "coherence/base/ids.hpp"
#include "coherence/pool/page_places.hpp"
#include "coherence/region/damage.hpp"

namespace coherence {

struct PoolHeader;

inline constexpr uint64_t kBlockBytes = kPageSize;

struct ChecksumPage {
  static constexpr uint64_t kBlocks = 2041;
  struct Name {  // a page that an earlier save left there, or another file, has another one
    uint64_t pool_id;
    uint64_t save;
    uint32_t memory_node;
    uint32_t number;  // of this page
  };
  Name name;
  uint32_t checksum;           // CRC-32C of this page, with 0 here
  uint32_t of_block[kBlocks];  // CRC-32C of each
};
static_assert(sizeof(ChecksumPage) == kBlockBytes);

// How many bytes the copy of a file of so many bytes has.
uint64_t saved_bytes(uint64_t bytes) noexcept;
// The other way round; 0: no copy has that size.  So a file's checksums are found without its header.
uint64_t bytes_of_saved(uint64_t saved) noexcept;

// One block's, which says nothing of whether the pool was in use.
uint32_t block_checksum(uint64_t block, const std::byte* bytes) noexcept;
// Reads the page of checksums with that number; `bytes`: of the memory node's file.  Whether it is right, and of that
// save; false also: it cannot be read.
bool read_checksums(int fd, uint64_t bytes, const ChecksumPage::Name& name, ChecksumPage* to) noexcept;

// Writes the checksums behind a file that is being saved.  Blocks come in rising order, the first one among them; those
// left out are zero.
class ChecksumWriter {
 public:
  ChecksumWriter(int fd, const PoolHeader&) noexcept;
  // False: the file cannot be written; errno says why.
  bool add(uint64_t at, const std::byte* bytes, uint64_t count) noexcept;
  bool finish() noexcept;

 private:
  void begin_page(uint32_t number) noexcept;
  bool end_page() noexcept;

  const int fd_;
  const uint64_t bytes_;
  ChecksumPage page_;
};

// Checks the blocks of a file of the copy against its checksums.  Blocks come in rising order, the first one among
// them; those left out must be zero.  What is bad is noted in the Damage, and the check goes on.
class ChecksumReader {
 public:
  // `bytes`: of the memory node's file.
  ChecksumReader(int fd, uint32_t memory_node, uint64_t bytes, Damage&) noexcept;
  // False: the file cannot be read; errno says why.
  bool check(uint64_t at, const std::byte* bytes, uint64_t count) noexcept;
  bool finish() noexcept;
  // Whether the page of checksums that was used last is right.
  bool sound() const noexcept { return sound_; }

 private:
  bool read_page(uint32_t number) noexcept;
  bool check_block(uint64_t block, uint32_t calculated) noexcept;
  bool skip_to(uint64_t block) noexcept;
  void note(uint64_t block, uint32_t calculated, uint32_t expected) noexcept;

  const int fd_;
  const uint32_t memory_node_;
  const uint64_t bytes_;
  Damage& damage_;
  uint64_t next_ = 0;             // block
  uint32_t page_number_ = ~0u;    // whose page_ is
  bool sound_ = false;            // page_
  bool header_sound_ = false;     // the parts of the file are known
  bool first_sound_ = false;      // name_ is right
  ChecksumPage::Name name_ = {};  // of the first page
  PagePlaces places_ = {};
  ChecksumPage page_;
};

}  // namespace coherence

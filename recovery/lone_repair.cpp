#include "recovery/lone_repair.hpp"

#include <algorithm>

#include "bufmgr/buffer_pool.hpp"
#include "recovery/merge.hpp"

namespace recovery {

using bufmgr::PageId;
using coherence::Batch;
using coherence::Errc;
using coherence::kPageSize;
using coherence::Memory;
using coherence::Pool;
using coherence::PoolAddress;
using coherence::Problem;
using coherence::Status;

namespace {

constexpr uint32_t kVersionBytes = sizeof(bufmgr::PageHeader::version);

class AllRings {
 public:
  Status read(Pool& pool, Memory& memory, std::span<const coherence::PoolRepair::Dead> dead, Problem* problem) {
    for (const auto& one : dead) {
      const bufmgr::RegionSpan ring = bufmgr::BufferPool::ring_of(pool, one.node);
      Problem why;
      auto index = RingIndex::read(memory, ring.at, ring.bytes, one.incarnation, &why);
      if (!index) return problem->set(index.error(), "node %d: %s", int(one.node.value), why.text);
      index_[count_++] = index.take();
    }
    return {};
  }
  // The first page at or behind `from`; invalid: there is none.
  PageId next(PageId from) const {
    PageId first;  // which is behind all others
    for (int i = 0; i < count_; ++i)
      if (const auto changes = index_[i]->from(from); !changes.empty()) first = std::min(first, changes.front().page);
    return first;
  }
  coherence::Result<bool> apply_to(PageId page, std::byte* image, Problem* problem) const {
    Merge merge;
    for (int i = 0; i < count_; ++i) merge.add(*index_[i], index_[i]->of(page));
    return merge.apply_to(image, problem);
  }

 private:
  std::unique_ptr<RingIndex> index_[coherence::kNodesMax];
  int count_ = 0;
};

// The version comes last: a process that begins again after a death here finds an image that is old, or
// whole (repair.version-written-last).
Status bring_up_to_date(const AllRings& rings, PageId page, Pool& pool, Memory& memory, Problem* problem) {
  if (const Status there = pool.look_for(page); !there)
    return problem->set(Errc::kCorrupt, "redo has page %u:%llu, and the pool does not", unsigned(page.node().value),
                        static_cast<unsigned long long>(page.number()));
  const PoolAddress at = pool.page_address(page);
  alignas(8) std::byte image[kPageSize];
  Batch look(page.node());
  look.read(at, image, kPageSize);
  GCL_TRY(memory.run(look));
  const auto changed = rings.apply_to(page, image, problem);
  if (!changed) return changed.error();
  if (!*changed) return {};
  Batch write(page.node());
  write.write(at + kVersionBytes, image + kVersionBytes, kPageSize - kVersionBytes);
  write.write(at, image, kVersionBytes);
  return memory.run(write);
}

}  // namespace

Status LoneRepair::repair(Pool& pool, Memory& memory, std::span<const Dead> dead, Problem* problem) noexcept {
  AllRings rings;
  GCL_TRY(rings.read(pool, memory, dead, problem));
  for (PageId page = rings.next(PageId{0}); page.valid(); page = rings.next(page + 1))
    GCL_TRY(bring_up_to_date(rings, page, pool, memory, problem));
  return {};
}

}  // namespace recovery

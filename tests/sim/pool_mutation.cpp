// bufmgr, broken on purpose: these functions replace the product's own, whose sources are compiled with other names.
#include <algorithm>
#include <cstring>

#include "bufmgr/base/wakeup.hpp"
#include "bufmgr/mini_transaction.hpp"
#include "bufmgr/node_shared.hpp"
#include "coherence/session.hpp"
#include "coherence/session/write_back.hpp"
#include "mutation.hpp"
#include "recovery/apply.hpp"
#include "scheduler.hpp"

using coherence::Problem;
using coherence::Result;

namespace bufmgr {

void product_remove(FrameTable*, PageId, uint32_t) noexcept
    asm("_ZN6bufmgr10FrameTable14product_removeEN9coherence6PageIdEj");
void product_signal_wakeup(std::atomic<uint32_t>& word) noexcept;

void FrameTable::remove(PageId page, uint32_t frame) noexcept {
  if (sim::mutation == sim::Mutation::kNotUnpublished && sim::scheduler()->random().one_in(8)) return;
  if (sim::mutation == sim::Mutation::kUnpublishedFirst) return;  // it was, below
  product_remove(this, page, frame);
}

void product_spell_out_copies(MiniTransaction*) asm("_ZN6bufmgr15MiniTransaction24product_spell_out_copiesEv");

void MiniTransaction::spell_out_copies() {
  if (sim::mutation != sim::Mutation::kCopiesInRing) product_spell_out_copies(this);
  if (sim::mutation == sim::Mutation::kRangeLost && ranges_ > 1) --ranges_;
}

void signal_wakeup(std::atomic<uint32_t>& word) noexcept {
  if (sim::mutation != sim::Mutation::kWakeupLost) product_signal_wakeup(word);
}

}  // namespace bufmgr

namespace recovery {

Result<Applied> product_apply(bufmgr::RecordReader reader, const bufmgr::RecordPage& page, std::byte* image,
                              Problem* problem) noexcept;

namespace {

void set_version(std::byte* image, uint64_t version) {
  memcpy(image + offsetof(bufmgr::PageHeader, version), &version, sizeof version);
}

// kGroupTorn: the record of which a page was there already.
struct RecordName {
  uint64_t node, sequence;
  bool operator==(const RecordName&) const = default;
};
RecordName there_already{};

}  // namespace

Result<Applied> apply(bufmgr::RecordReader reader, const bufmgr::RecordPage& page, std::byte* image,
                      Problem* problem) noexcept {
  bufmgr::PageHeader header;
  memcpy(&header, image, sizeof header);
  const bool newer = header.version >= page.version, older = header.version + 1 < page.version;
  if (sim::mutation == sim::Mutation::kAppliedAgain && newer) set_version(image, page.version - 1);
  if (sim::mutation == sim::Mutation::kGapApplied && older) set_version(image, page.version - 1);
  if (sim::mutation == sim::Mutation::kGroupTorn) {
    const RecordName name{reader.header().node, reader.header().sequence};
    if (newer) there_already = name;
    if (name == there_already) return Applied::kAlreadyThere;
  }
  return product_apply(reader, page, image, problem);
}

}  // namespace recovery

namespace coherence {

bool product_begin_evict(Evictor*, Line&, PageId, Post*) noexcept
    asm("_ZN9coherence7Evictor19product_begin_evictERNS_4LineENS_6PageIdEPNS_4PostE");

bool Evictor::begin_evict(Line& line, PageId page, Post* release) noexcept {
  const NodeParts& node = session_.node;
  const ArenaLayout& layout = node.arena->layout;
  const auto plan = bufmgr::ArenaPlan::make(node.frames, node.sessions_max, 0, 0);               // its first parts
  if (sim::mutation == sim::Mutation::kUnpublishedFirst && layout.private_bytes > plan.table) {  // bufmgr's node
    std::byte* const private_memory = reinterpret_cast<std::byte*>(node.arena) + layout.private_at;
    bufmgr::FrameTable table(private_memory + plan.table, node.frames, *node.fence);
    const uint32_t frame = node.index_of(line);
    if (table.find(page, [&](uint32_t f) { return f == frame && line.page() == page; }) == frame)
      bufmgr::product_remove(&table, page, frame);
  }
  if (product_begin_evict(this, line, page, release)) return true;
  if (sim::mutation != sim::Mutation::kLatchedFreed || line.page() != page || !line.word().shared()) return false;
  *release = Post::kNone;
  return true;
}

Result<bool> product_begin_write_back(Evictor*, Line&, PageId) noexcept
    asm("_ZN9coherence7Evictor24product_begin_write_backERNS_4LineENS_6PageIdE");

Result<bool> Evictor::begin_write_back(Line& line, PageId page) noexcept {
  if (sim::mutation == sim::Mutation::kCountedAsWritten && line.page() == page &&
      sim::scheduler()->random().one_in(8)) {
    written_back(line);
    return false;
  }
  return product_begin_write_back(this, line, page);
}

}  // namespace coherence

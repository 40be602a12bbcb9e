#include "extension/engine/serializable/hold_table.hpp"

#include <new>
#include <utility>

#include "coherence/base/verify.hpp"

namespace engine {

size_t HoldTable::bytes_for(uint32_t entries, uint32_t sessions) {
  return sizeof(HoldTable) + sessions * sizeof(Holder) + entries * (sizeof(Bucket) + sizeof(Entry));
}

HoldTable* HoldTable::create(void* memory, uint32_t entries, uint32_t sessions, const std::atomic<uint32_t>* fence) {
  static_assert(sizeof(HoldTable) % alignof(Holder) == 0 && sizeof(Bucket) % alignof(Entry) == 0);
  VERIFY(entries != 0);
  auto* table = new (memory) HoldTable{};
  table->entries_ = table->buckets_ = entries;
  table->sessions_ = sessions;
  for (uint32_t i = 0; i < sessions; ++i) new (reinterpret_cast<Holder*>(table + 1) + i) Holder{};
  table->fence_ = fence;
  for (uint32_t i = 0; i < entries; ++i) new (table->bucket() + i) Bucket{.spin = {}, .first = kNone};
  for (uint32_t i = 0; i < entries; ++i)
    new (table->entry() + i) Entry{
        .page = 0, .by = {}, .read = 0, .write = 0, .wants = 0, .next = i + 1 < entries ? i + 1 : kNone, .session = 0};
  return table;
}

uint32_t HoldTable::take_free() {
  coherence::SpinGuard guard(free_spin_, fence_);
  const uint32_t index = free_;
  if (index == kNone) return kNone;
  free_ = entry()[index].next;
  used_.store(used_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  return index;
}

void HoldTable::give_back(uint32_t index) {
  coherence::SpinGuard guard(free_spin_, fence_);
  entry()[index].next = free_;
  free_ = index;
  used_.store(used_.load(std::memory_order_relaxed) - 1, std::memory_order_relaxed);
}

bool HoldTable::copy_entries(PageId page, uint32_t* chain) {
  for (uint32_t i = bucket_of(page).first; i != kNone; i = entry()[i].next) {
    const Entry at = entry()[i];
    if (at.page != page.raw) continue;
    if (holder(at.session).word() == HolderWord::of(at.by, HolderState::kGivenUp)) continue;  // mark-under-bucket
    const uint32_t index = take_free();
    if (index == kNone) {
      while (*chain != kNone) give_back(std::exchange(*chain, entry()[*chain].next));
      return false;
    }
    entry()[index] = at;
    entry()[index].next = std::exchange(*chain, index);
  }
  return true;
}

// serializable.parts-apart
HoldTable::Entered HoldTable::enter_locked(Bucket& bucket, PageId page, uint16_t session, TxnId by,
                                           const Wanted& wanted, Other* other, bool* first) {
  Entry* mine = nullptr;
  const Entry* against = nullptr;
  for (uint32_t i = bucket.first; i != kNone; i = entry()[i].next) {
    Entry& at = entry()[i];
    if (at.page != page.raw) continue;
    if (at.by == by)
      mine = &at;
    else if (against == nullptr && wanted.conflicts(at))
      against = &at;
  }
  if (against != nullptr) {
    *other = {.by = against->by, .only_reads = (wanted.parts & against->write) == 0};
    if (mine == nullptr || !wanted.exclusive) return Entered::kHeld;
    if (meets_upgrader(bucket, *mine, wanted)) return Entered::kUpgrade;
    mine->wants = wanted.parts;
    holder(session).note_upgrade(page.raw);
    return Entered::kHeld;
  }
  if (mine == nullptr) {
    const uint32_t index = take_free();
    if (index == kNone) return Entered::kFull;
    mine = entry() + index;
    *mine = {.page = page.raw, .by = by, .read = 0, .write = 0, .wants = 0, .next = bucket.first, .session = session};
    bucket.first = index;
  }
  Parts& has = wanted.exclusive ? mine->write : mine->read;
  if ((wanted.parts & ~has) == 0) return Entered::kBefore;
  *first = has == 0;
  has |= wanted.parts;
  return Entered::kNow;
}

// serializable.one-upgrader
bool HoldTable::meets_upgrader(const Bucket& bucket, const Entry& mine, const Wanted& wanted) {
  for (uint32_t i = bucket.first; i != kNone; i = entry()[i].next) {
    const Entry& at = entry()[i];
    if (at.page == mine.page && at.by != mine.by && wanted.conflicts(at) &&
        holder(at.session).upgrades(at.by, at.page) && Wanted{true, at.wants}.conflicts(mine))
      return true;
  }
  return false;
}

uint8_t HoldTable::leave_locked(Bucket& bucket, PageId page, TxnId by, TxnId* next) {
  uint8_t modes = 0;
  for (uint32_t* link = &bucket.first; *link != kNone;) {
    Entry& at = entry()[*link];
    if (at.page == page.raw && at.by == by) {
      modes = uint8_t((at.read != 0 ? kShared : 0) | (at.write != 0 ? kExclusive : 0));
      const uint32_t gone = *link;
      *link = at.next;
      give_back(gone);
      continue;
    }
    if (at.page == page.raw) *next = at.by;
    link = &at.next;
  }
  return modes;
}

bool HoldTable::first_of(const Bucket& bucket, TxnId by, uint64_t* page) {
  for (uint32_t i = bucket.first; i != kNone; i = entry()[i].next) {
    if (entry()[i].by != by) continue;
    *page = entry()[i].page;
    return true;
  }
  return false;
}

TxnId HoldTable::other_holder(PageId page, TxnId self) {
  Bucket& bucket = bucket_of(page);
  coherence::SpinGuard guard(bucket.spin, fence_);
  for (uint32_t i = bucket.first; i != kNone; i = entry()[i].next)
    if (entry()[i].page == page.raw && entry()[i].by != self) return entry()[i].by;
  return {};
}

bool HoldTable::holder_is_wanted(PageId page) {
  Bucket& bucket = bucket_of(page);
  coherence::SpinGuard guard(bucket.spin, fence_);
  for (uint32_t i = bucket.first; i != kNone; i = entry()[i].next) {
    const Entry& at = entry()[i];
    if (at.page == page.raw && holder(at.session).word().by() == at.by && holder(at.session).wanted()) return true;
  }
  return false;
}

}  // namespace engine

// Before a leaf is split: whether many of its entries are dead.
#include <type_traits>

#include "extension/engine/blink/erase.hpp"

namespace engine::blink {
namespace {

constexpr uint32_t kFirstSample = 4;  // one dead among them is reason to judge more
constexpr uint32_t kSample = 16;
constexpr uint32_t kWorthIt = 4;  // a leaf is gone through if one of this many of the sample is dead

// A leaf in private memory.  Plain data.
struct Leaf {
  alignas(8) std::byte bytes[kPageSize];
  Head head;
  Tid tid(uint32_t i) const { return load_tid(key_at(bytes, head, i).data()); }
};
static_assert(std::is_trivially_destructible_v<Leaf>);  // blink.compare-private-memory

// Judges `sample` entries at most, evenly apart.  Returns how many.
Result<uint32_t> judge(const Leaf& leaf, uint32_t sample, DeadJudge& judge, DeadEntries& dead) {
  const uint32_t step = (leaf.head.count + sample - 1) / sample;
  uint32_t judged = 0;
  for (uint32_t i = 0; i < leaf.head.count; i += step, ++judged) {
    const Tid tid = leaf.tid(i);
    bool gone;
    if (auto said = judge.dead_to_all(tid); !said)
      return said.error();
    else
      gone = *said;
    if (gone) dead.add(tid);
  }
  return judged;
}

}  // namespace

Status clear_leaf(const Ground& g, PageId page, uint64_t version, DeadJudge& rows, bool& cleared) {
  cleared = false;
  Leaf leaf;
  GCL_TRY(g.pool->copy_page(*g.session, page, leaf.bytes));
  if (!read_head(Source::plain(leaf.bytes), leaf.head)) return Errc::kCorrupt;
  if (!leaf.head.leaf() || leaf.head.version != version) return {};
  DeadEntries dead;
  dead.begin(page, version);
  if (auto judged = judge(leaf, kFirstSample, rows, dead); !judged) return judged.error();
  if (dead.count == 0) return {};
  dead.begin(page, version);
  uint32_t sampled = 0;
  if (auto judged = judge(leaf, kSample, rows, dead); !judged)
    return judged.error();
  else
    sampled = *judged;
  if (dead.count == 0 || dead.count * kWorthIt < sampled) return {};
  if (sampled < leaf.head.count) {
    dead.begin(page, version);
    if (auto judged = judge(leaf, leaf.head.count, rows, dead); !judged) return judged.error();
  }
  auto erased = erase(g, dead);
  const bool stays = !erased && (erased.error() == Errc::kRestart || erased.error() == Errc::kHeld);
  if (!erased) return stays ? Status{} : Status(erased.error());
  cleared = erased->gone != 0;
  return {};
}

}  // namespace engine::blink

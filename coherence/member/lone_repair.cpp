// A pool all of whose nodes are dead: the first process that joins repairs it before it is a node (repair.alone).
#include <algorithm>
#include <array>

#include "coherence/member/node.hpp"

namespace coherence {
namespace {

constexpr uint32_t kWordsAtOnce = 512;  // a READ of 4 KB

// Nobody has any page.
Status clear_words(Pool& pool, Memory& memory, MemoryNodeId n) {
  const auto places = pool.places(n);
  if (!places) return places.error();
  for (uint64_t from = 0; from < places->words(); from += kWordsAtOnce) {
    const auto count = uint32_t(std::min<uint64_t>(kWordsAtOnce, places->words() - from));
    const PoolAddress at = places->words_at + from * sizeof(LatchWord);
    std::array<uint64_t, kWordsAtOnce> words{};
    Batch look(n);
    look.read(at, words.data(), count * uint32_t(sizeof(LatchWord)));
    GCL_TRY(memory.run(look));
    if (std::all_of(words.begin(), words.begin() + count, [](uint64_t word) { return word == 0; })) continue;
    words.fill(0);
    Batch clear(n);
    clear.write(at, words.data(), count * uint32_t(sizeof(LatchWord)));
    GCL_TRY(memory.run(clear));
  }
  return {};
}

}  // namespace

// In this order: a process that dies here leaves what the next one begins again with.
Status Node::repair_alone(NodeSet dead, PoolRepair& redo, Problem* problem) {
  Counters counters{};
  const auto memory = open_memory(counters);
  PoolRepair::Dead all[kNodesMax];
  size_t count = 0;
  for (NodeSet left = dead; !left.empty(); left = left.without(left.first()))
    all[count++] = {left.first(), info(left.first()).incarnation};
  GCL_TRY(redo.repair(pool(), *memory, {all, count}, problem));
  for (uint32_t n = 0; n < pool().memory_nodes(); n++)
    if (const Status cleared = clear_words(pool(), *memory, MemoryNodeId{uint8_t(n)}); !cleared)
      return problem->set(cleared.error(), "the latch words of memory node %u cannot be cleared", n);
  members_->forget(dead);
  return {};
}

}  // namespace coherence

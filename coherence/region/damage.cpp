#include "coherence/region/damage.hpp"

#include "coherence/region/memory_file.hpp"

namespace coherence {

void Damage::Block::add_to(Text& text) const noexcept {
  if (part != nullptr)
    text.add("%s of memory node %u", part, memory_node);
  else
    text.add("page %llu of memory node %u", static_cast<unsigned long long>(page), memory_node);
}

void Damage::add(const Block& block) noexcept {
  if (bad < kNamedMax) first[bad] = block;
  bad++;
}

Errc Damage::tell(const char* durable_path, Problem* problem) const noexcept {
  constexpr uint64_t kToldMax = 5;  // a problem is one sentence
  Text text;
  first[0].add_to(text.add("page verification failed, calculated checksum %u but expected %u: ", first[0].calculated,
                           first[0].expected));
  text.add("; bad %s", bad == 1 ? "is block" : "are blocks");
  for (uint64_t i = 0; i < bad && i < kToldMax; i++)
    text.add("%s %u:%llu", i == 0 ? "" : ",", first[i].memory_node, static_cast<unsigned long long>(first[i].number));
  if (bad > kToldMax) text.add(" and %llu more", static_cast<unsigned long long>(bad - kToldMax));
  text.add(" (memory node:block) of %llu", static_cast<unsigned long long>(checked));
  if (unchecked > 0) text.add(", %llu could not be checked", static_cast<unsigned long long>(unchecked));
  const MemoryPath path(durable_path, first[0].memory_node);
  return problem->set(Errc::kCorrupt, "%s; in pool file %s", text.c_str(), path.text);
}

}  // namespace coherence

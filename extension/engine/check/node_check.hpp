// Checks of one B-link page alone, in private memory (rules.md).
#pragma once

#include "extension/engine/blink/check.hpp"
#include "extension/engine/check/finding.hpp"

namespace engine {

// What a checker asks of the index: how stored keys are ordered, and whether a key's bytes are a key at all.
// (blink.compare-private-memory) may run user code, and leave by longjmp.
class KeySeam : public blink::KeyOrder {
 public:
  // What is wrong with the bytes of a key; null: nothing.  Asked before they are ordered.
  virtual const char* defect(std::span<const std::byte> key) = 0;
};

// A page of a tree, copied at one moment.  Plain data.
struct NodeCopy {
  coherence::PageId id;
  blink::Head head;
  bool headed = false;  // its level, flags and siblings can be used
  bool sound = false;   // its entries and high key, too
  alignas(8) std::byte bytes[coherence::kPageSize];
  FindingPlace at(uint32_t entry) const { return {.page = id, .item = uint16_t(entry + 1)}; }
  FindingPlace at() const { return {.page = id}; }
  std::span<const std::byte> key(uint32_t i) const { return blink::key_at(bytes, head, i); }
  std::span<const std::byte> high() const { return blink::high_of(bytes, head); }
};

// The order of stored keys, tids included.
int order_of_keys(KeySeam& keys, std::span<const std::byte> a, std::span<const std::byte> b);

// check.header-is-sane, check.node-space, check.keys-ascend: fills head and sound of a copy whose bytes are there.
void check_node(NodeCopy& node, uint32_t relation, KeySeam& keys, Findings& findings);

}  // namespace engine

#include "extension/engine/check/node_check.hpp"

#include <bitset>

#include "extension/engine/check/page_check.hpp"

namespace engine {

using blink::Head;
using blink::Link;
using blink::Source;

int order_of_keys(KeySeam& keys, std::span<const std::byte> a, std::span<const std::byte> b) {
  if (const int c = keys(a, b); c != 0) return c;
  const bool first = blink::is_pivot(a.data()), second = blink::is_pivot(b.data());  // blink.pivot-tid-minus-infinity
  if (first || second) return int(second) - int(first);
  const Tid x = blink::load_tid(a.data()), y = blink::load_tid(b.data());
  return x < y ? -1 : x == y ? 0 : 1;
}

namespace {

// Where the bytes of a page are, so that none is used twice.
class Space {
 public:
  bool take(uint32_t offset, uint32_t bytes) {
    for (uint32_t unit = offset / 8, end = unit + blink::align8(bytes) / 8; unit < end; ++unit) {
      if (taken_[unit]) return false;
      taken_.set(unit);
    }
    used_ += blink::align8(bytes);
    return true;
  }
  uint32_t used() const { return used_; }

 private:
  std::bitset<coherence::kPageSize / 8> taken_;
  uint32_t used_ = 0;
};

bool check_head(NodeCopy& node, uint32_t relation, Findings& findings) {
  const bool sane = blink::read_head(Source::plain(node.bytes), node.head);
  if (!sane) {
    findings.add(node.at(), "page is no page of an index: type %u, level %u, links end at %u, entries begin at %u",
                 unsigned(node.head.type), unsigned(node.head.special.level), unsigned(node.head.lower),
                 unsigned(node.head.upper));
    return false;
  }
  if (!check_header(node.bytes, node.head.type, relation, node.at(), findings)) return false;
  const auto& special = node.head.special;
  constexpr uint16_t kKnown = blink::kIncompleteSplit | blink::kHalfDead | blink::kDeleted;
  const bool flags =
      (special.flags & ~kKnown) == 0 && (!node.head.deleted() || node.head.gone()) && special.level < blink::kLevelsMax;
  if (!flags) findings.add(node.at(), "page has flags %#x on level %u", unsigned(special.flags), special.level);
  return flags;
}

// Links, and the keys behind them, as bytes.
bool check_bytes(const NodeCopy& node, KeySeam& keys, Findings& findings) {
  const Head& head = node.head;
  Space space;
  const Source page = Source::plain(node.bytes);
  for (uint32_t i = 0; i < head.count; ++i) {
    Link link;
    const bool inside = blink::read_link(page, head, i, link) && link.offset >= head.upper &&
                        (link.bytes >= head.entry_skip() + blink::kKeyMin || (!head.leaf() && i == 0));
    if (!inside || !space.take(link.offset, link.bytes)) {
      findings.add(node.at(i), "%s", inside ? "index entry overlaps another one" : "index entry lies outside its page");
      return false;
    }
    coherence::PageId child;
    if (!head.leaf() && !blink::read_child(page, head, i, child)) {
      findings.add(node.at(i), "downlink names no page");
      return false;
    }
    if (!head.leaf() && i == 0) continue;  // blink.first-key-minus-infinity
    if (const char* defect = keys.defect(node.key(i))) {
      findings.add(node.at(i), "index entry is malformed: %s", defect);
      return false;
    }
  }
  if (head.special.has_right()) {
    const uint32_t at = head.special.high_at, bytes = head.special.high_bytes;
    const bool inside =
        bytes >= blink::kKeyMin && at >= head.upper && blink::in_entries(head, at, bytes, blink::kKeyMax);
    if (!inside || !space.take(at, bytes)) {
      findings.add(node.at(), "high key lies outside its page, or in an entry");
      return false;
    }
    if (const char* defect = keys.defect(node.high())) {
      findings.add(node.at(), "high key is malformed: %s", defect);
      return false;
    }
  }
  const uint32_t expected = blink::kSpecialAt - head.upper, found = space.used() + head.special.garbage;
  if (found != expected)
    findings.add(node.at(), "%u bytes of entries are accounted for, but there are %u", found, expected);
  return true;
}

// check.keys-ascend.  Stops at the first: what follows is compared with what is wrong.
bool check_order(const NodeCopy& node, KeySeam& keys, Findings& findings) {
  const Head& head = node.head;
  const uint32_t first = head.leaf() ? 0 : 1;
  for (uint32_t i = first; i < head.count; ++i) {
    const auto key = node.key(i);
    if (head.leaf() && blink::is_pivot(key.data())) {
      findings.add(node.at(i), "index entry of a leaf points to no row");
      return false;
    }
    if (i > first && order_of_keys(keys, node.key(i - 1), key) >= 0) {
      findings.add(node.at(i), "item order invariant violated: not behind the entry before it");
      return false;
    }
    if (head.special.has_right() && order_of_keys(keys, key, node.high()) >= 0) {
      findings.add(node.at(i), "high key invariant violated: entry is not below its page's high key");
      return false;
    }
  }
  return true;
}

}  // namespace

void check_node(NodeCopy& node, uint32_t relation, KeySeam& keys, Findings& findings) {
  node.sound = false;
  node.headed = check_head(node, relation, findings);
  if (!node.headed || !check_bytes(node, keys, findings)) return;
  const Head& head = node.head;
  if (head.gone() && (head.incomplete() || head.count > (head.leaf() ? 0 : 1)))
    findings.add(node.at(), "page has left the tree, but has %u entries", unsigned(head.count));
  if (head.gone() && !head.special.has_right())
    findings.add(node.at(), "last page of its level has left the tree");  // blink.deleted-covers-nothing
  if (head.incomplete() && !head.special.has_right())
    findings.add(node.at(), "page's split is incomplete, but it has no right sibling");
  node.sound = check_order(node, keys, findings);
}

}  // namespace engine

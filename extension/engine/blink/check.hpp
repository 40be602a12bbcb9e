// Checker: reads a whole tree that no session is changing, and names the first thing wrong.
#pragma once

#include "extension/engine/blink/node.hpp"
#include "extension/engine/blink/tree.hpp"

namespace engine::blink {

// Orders two stored keys by their attributes; an attribute that a shortened key lacks is minus infinity.
class KeyOrder {
 public:
  virtual ~KeyOrder() = default;
  virtual int operator()(std::span<const std::byte> a, std::span<const std::byte> b) = 0;
};

struct CheckReport {
  bool sound = true;
  PageId page;  // where, if not
  const char* what = "sound";
  uint64_t entries = 0;
  uint64_t pages = 0;
  uint32_t height = 0;
  uint32_t incomplete = 0;  // splits still to complete: not an error
  uint32_t half_dead = 0;   // pages that have left their parents, but not their siblings: not an error
};

class Checker {
 public:
  Checker(const Tree& tree, Session& session, KeyOrder& key_order)
      : tree_(tree), session_(&session), key_order_(&key_order) {}
  Result<CheckReport> run();

 private:
  struct Page {
    PageId id;
    Head head;
    alignas(8) std::byte bytes[kPageSize];
  };
  Status read(Page& page, PageId id, bool& node);
  Status check_level(PageId first, uint16_t level, PageId parent_first);
  bool check_page(const Page& page, uint16_t level, PageId left, const Key& low);
  bool check_space(const Page& page);
  bool check_gone(const Page& page, uint16_t level, PageId left);
  Status check_downlink(const Page& page, const Key& low, bool linked, PageId parent_first);
  int compare(std::span<const std::byte> a, std::span<const std::byte> b);
  bool wrong(PageId page, const char* what);

  Tree tree_;
  Session* session_;
  KeyOrder* key_order_;
  CheckReport report_;
  Page page_, parent_;
  uint32_t parent_index_ = 0;
};

}  // namespace engine::blink

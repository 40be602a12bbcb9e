#include "bufmgr/inspect/page_text.hpp"

#include <iterator>

#include "bufmgr/log/record.hpp"
#include "coherence/trace/line_text.hpp"

namespace bufmgr {
namespace {

constexpr int kRangesShown = 6;

unsigned long long wide(uint64_t value) { return value; }

}  // namespace

const char* page_type_name(PageType type) noexcept {
  static constexpr const char* kNames[] = {"unused",  "pool root",  "space map",   "relation header", "extent map",
                                           "heap",    "blink meta", "blink inner", "blink leaf",      "lock cells",
                                           "DDL log", "list",       "sequence",    "status words",    "reclaim list"};
  static_assert(std::size(kNames) == size_t(PageType::kReclaim) + 1);
  return size_t(type) < std::size(kNames) ? kNames[size_t(type)] : "?";
}

void add(coherence::Text& to, const PageHeader& h) noexcept {
  to.add("%s (type %u), version %llu", page_type_name(h.type), unsigned(h.type), wide(h.version));
  if (h.relation != 0) to.add(", relation header page %u", h.relation);
  if (h.flags != 0) to.add(", flags %04x", h.flags);
  if (h.lower != 0 || h.upper != 0) to.add(", lower %u, upper %u, special %u", h.lower, h.upper, h.special);
}

void add_record(coherence::Text& to, std::span<const std::byte> record) noexcept {
  if (record.size() < sizeof(RecordHeader)) return void(to.add("%zu bytes, too few for a record", record.size()));
  RecordReader reader(record);
  const RecordHeader& h = reader.header();
  if (h.magic != RecordHeader::kMagic || h.bytes < sizeof h || h.bytes > record.size())
    return void(to.add("%zu bytes that are no record", record.size()));
  RecordReader pages(record.first(h.bytes));
  to.add("node %u, sequence %llu, %u bytes, %u pages%s", h.node, wide(h.sequence), h.bytes, h.pages,
         sound_record(record, h.sequence) ? "" : ", UNSOUND (checksum)");
  while (const RecordPage* page = pages.next()) {
    coherence::add(to.add("\n  page "), coherence::PageId{page->page});
    to.add(" becomes version %llu:", wide(page->version));
    for (int i = 0; i < page->ranges && i < kRangesShown; ++i) {
      const RecordRange& range = pages.ranges()[i];
      to.add(" [%u, %u)%s", range.offset, range.offset + range.bytes(), range.zero() ? " zero" : "");
    }
    if (page->ranges > kRangesShown) to.add(" and %d ranges more", page->ranges - kRangesShown);
  }
  if (pages.corrupt()) to.add("\n  and what makes no sense");
}

}  // namespace bufmgr

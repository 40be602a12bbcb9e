#include "bufmgr/inspect/page_text.hpp"

#include <iterator>

#include "bufmgr/log/record.hpp"
#include "coherence/trace/line_text.hpp"

namespace bufmgr {
namespace {

constexpr int kStepsShown = 6;

unsigned long long wide(uint64_t value) { return value; }

}  // namespace

const char* page_type_name(PageType type) noexcept {
  static constexpr const char* kNames[] = {"unused",     "pool root",    "space map",    "relation header",
                                           "extent map", "heap",         "blink meta",   "blink inner",
                                           "blink leaf", "lock cells",   "DDL log",      "list",
                                           "sequence",   "status words", "reclaim list", "DDL log root"};
  static_assert(std::size(kNames) == size_t(PageType::kLogRoot) + 1);
  return size_t(type) < std::size(kNames) ? kNames[size_t(type)] : "?";
}

void add(coherence::Text& to, const PageHeader& h) noexcept {
  to.add("%s (type %u), version %llu", page_type_name(h.type), unsigned(h.type), wide(h.version));
  if (h.relation != 0) to.add(", relation header page %u", h.relation);
  if (h.flags != 0) to.add(", flags %04x", h.flags);
  if (h.lower != 0 || h.upper != 0) to.add(", lower %u, upper %u, special %u", h.lower, h.upper, h.special);
}

void add_record(coherence::Text& to, std::span<const std::byte> record) noexcept {
  RecordReader reader(record);
  const RecordHeader h = reader.header();
  const coherence::Status readable = check_format(record);
  if (readable.error() == coherence::Errc::kCorrupt)
    return void(to.add("%zu bytes are too few for a record", record.size()));
  if (!readable)
    return void(to.add("%zu bytes of format %u; formats %u to %u are read here", record.size(), unsigned(h.format),
                       RecordHeader::kOldest, RecordHeader::kBrief));
  to.add("node %u, sequence %llu, %zu bytes", unsigned(h.node), wide(h.sequence), record.size());
  if (h.format < RecordHeader::kFormat) to.add(", format %u", unsigned(h.format));
  while (const RecordPage* page = reader.next_page()) {
    coherence::add(to.add("\n  page "), page->page);
    to.add(" becomes version %llu:", wide(page->version));
    int steps = 0;
    while (const RecordStep* step = reader.next_step()) {
      if (++steps > kStepsShown) continue;
      to.add(" [%u, %u)", step->offset, step->end());
      if (step->kind == RecordStep::kZero) to.add(" zero");
      if (step->kind == RecordStep::kCopy) to.add(" from %u", step->source);
    }
    if (steps > kStepsShown) to.add(" and %d steps more", steps - kStepsShown);
  }
  if (reader.corrupt()) to.add("\n  and what makes no sense");
}

}  // namespace bufmgr

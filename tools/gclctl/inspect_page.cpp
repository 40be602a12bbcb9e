// gclctl inspect page, line: a page in the pool, and what the nodes know of it.
#include <fmt/format.h>

#include "coherence/trace/line_text.hpp"
#include "tools/gclctl/failure.hpp"
#include "tools/gclctl/inspect.hpp"
#include "tools/gclctl/look.hpp"

namespace gclctl {
namespace {

using coherence::ArenaView;
using coherence::Line;
using coherence::LineOp;
using coherence::NodeId;
using coherence::PageId;
using coherence::PoolView;

constexpr int kLinesShown = 50;

// Its own words begin at the left.
void print_line(const ArenaView& arena, NodeId node, uint32_t index, const Line::Sight& line) {
  fmt::print("node {}   line {}\n  {}\n", node.value, index, text_of_words(line));
  std::byte frame[coherence::kPageSize];
  const bool usable = line.latch.msi() != coherence::MsiState::kInvalid;
  if (line.page.valid() && arena.frame(index, frame))
    fmt::print("  frame    {}{}\n", page_text(frame), usable ? "" : " (not a copy that is used)");
}

bool at_rest(const Line::Sight& line) {
  return line.state.op == LineOp::kIdle && line.state.parked_count == 0 && line.state.holds_shared == 0 &&
         line.state.holds_exclusive == 0 && line.latch.free() && !line.latch.pending() && !line.latch.has_waiters() &&
         line.spin == 0 && !line.writing;
}

}  // namespace

int inspect_page(PoolView& pool, const std::string& name, int node) {
  const PageId page = page_named(pool, name);
  const auto latch = pool.latch(page);
  std::byte bytes[coherence::kPageSize];
  if (!latch || !pool.page(page, bytes)) fail("page {} cannot be read: the pool's file is gone, or cut short", name);
  fmt::print("page     {}\nlatch    {}\nin pool  {}\n", text_of_words(page), text_of_words(*latch), page_text(bytes));
  for (const NodeId n : nodes_named(pool, node)) {
    const auto arena = arena_of(pool, n);
    if (!arena) continue;
    bool found = false;
    arena->for_lines([&](uint32_t index, const Line::Sight& line) {
      if (line.page != page) return true;
      print_line(*arena, n, index, line);
      return !(found = true);
    });
    if (!found) fmt::print("node {}   no line\n", n.value);
  }
  return 0;
}

int inspect_line(PoolView& pool, int wanted, int node) {
  if (wanted >= 0 && node < 0) fail("say whose line it is: --node N");
  for (const NodeId n : nodes_named(pool, node)) {
    const auto arena = arena_of(pool, n);
    if (!arena) continue;
    if (wanted >= 0) {
      Line::Sight line;
      if (!arena->line(uint32_t(wanted), &line))
        fail("node {} has no line {}: it has lines 0 to {}", n.value, wanted, arena->layout().frames - 1);
      print_line(*arena, n, uint32_t(wanted), line);
      continue;
    }
    int shown = 0;
    arena->for_lines([&](uint32_t index, const Line::Sight& line) {
      if (at_rest(line)) return true;
      if (shown < kLinesShown) print_line(*arena, n, index, line);
      ++shown;
      return true;
    });
    if (shown == 0) fmt::print("node {}   all lines are at rest\n", n.value);
    if (shown > kLinesShown) fmt::print("node {}   and {} lines more\n", n.value, shown - kLinesShown);
  }
  return 0;
}

}  // namespace gclctl

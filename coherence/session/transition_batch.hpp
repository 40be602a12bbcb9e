// The batch that a step() asks for (line_machine.hpp, Post).
#pragma once

#include "coherence/line/line.hpp"
#include "coherence/line/line_machine.hpp"
#include "coherence/member/node_parts.hpp"
#include "coherence/transport/memory.hpp"

namespace coherence {

// Fills `batch`, which goes to the page's memory node; returns the place of its atomic, -1: it has none.
int add_transition(const NodeParts& node, Batch& batch, Line& line, const Actions& actions) noexcept;
// Whether it writes the page back.
constexpr bool writes_back(Post post) {
  return post == Post::kRelease || post == Post::kHandOver || post == Post::kDowngrade;
}

}  // namespace coherence

// What the words of this layer say, in the terms of protocol.md: for traces, reports and tools.
#pragma once

#include <iterator>

#include "coherence/base/text.hpp"
#include "coherence/latch/latch_word.hpp"
#include "coherence/latch/local_latch.hpp"
#include "coherence/line/line.hpp"
#include "coherence/line/line_machine.hpp"

namespace coherence {

// Names.  What is none (a byte that was read while it changed, or of a broken process) is "?".
const char* text(MsiState) noexcept;
const char* text(LineOp) noexcept;
const char* text(RequestKind) noexcept;
const char* text(ReplyKind) noexcept;
const char* text(Event::Kind) noexcept;
const char* text(Post) noexcept;
const char* text(LatchEnd) noexcept;

// Sentences, added to what `to` has.
void add(Text& to, PageId page) noexcept;    // "0:123": memory node and number
void add(Text& to, NodeSet nodes) noexcept;  // "{1, 3}"
void add(Text& to, LatchWord word) noexcept;
void add(Text& to, LocalWord word) noexcept;
void add(Text& to, const PeerRequest& request) noexcept;
void add(Text& to, const LineState& state) noexcept;   // several lines, each but the first indented
void add(Text& to, const Line::Sight& line) noexcept;  // likewise

}  // namespace coherence

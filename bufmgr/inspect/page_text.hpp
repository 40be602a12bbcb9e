// Pages and redo records in words: for tools.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "bufmgr/base/page.hpp"
#include "coherence/base/text.hpp"

namespace bufmgr {

// "heap", "blink leaf", ...; "?" for no known type.
const char* page_type_name(PageType type) noexcept;

void add(coherence::Text& to, const PageHeader& header) noexcept;

// A record: "node 1, sequence 4096, 112 bytes", and a line for each page.  Cut off where it makes no sense.
void add_record(coherence::Text& to, std::span<const std::byte> record) noexcept;

}  // namespace bufmgr

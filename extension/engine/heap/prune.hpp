// Writing a heap page anew from a private image, logging only what differs.
#pragma once

#include "bufmgr/mini_transaction.hpp"

namespace engine {

// Makes line pointers and space of `page` what they are in `to`, and (`rows`) the rows; version and identity stay.
// REQUIRES: joined.
void put_page(bufmgr::MiniTransaction& change, bufmgr::ExclusiveGuard& page, const std::byte* to, bool rows);

}  // namespace engine

// Whether the bytes of a row, or of an index key, can be taken apart by a tuple descriptor.  Asked before PostgreSQL
// does it, which believes every length that it finds.
#pragma once

#include <cstddef>
#include <span>

#include "extension/pg/boundary/pg.hpp"

namespace gcl {

// What is wrong, in a buffer that the next call overwrites; null: nothing.
const char* row_defect(TupleDesc description, std::span<const std::byte> row);
const char* key_defect(TupleDesc description, int key_attributes, std::span<const std::byte> key);

}  // namespace gcl

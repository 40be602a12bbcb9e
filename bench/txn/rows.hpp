// Rows in pages, and what is done with them: what concurrency control is about.
#pragma once

#include <cstdint>

namespace txn {

// A row is the first bytes of a line of 64: a page has one in each of some of its lines.
struct Row {
  uint64_t page;
  uint32_t line;
  uint64_t number() const { return page * 64 + line; }
  bool operator==(const Row&) const = default;
  bool operator<(const Row& other) const { return number() < other.number(); }
};

enum class Access : uint8_t {
  kRead,
  kUpdate,     // reads, then writes
  kImmutable,  // reads what nobody ever writes: no concurrency control (txn.immutable-is-free)
};

using Lines = uint64_t;  // of a page, as a set
inline constexpr Lines kAllLines = ~Lines{0};

struct Step {
  Row row;
  Access access;
};

// What a row's line holds.  Zero at first.
struct Stored {
  uint64_t version;              // so many committed changes
  uint64_t written_at, read_at;  // timestamps; timestamp ordering
  uint64_t pending;              // the transaction that is about to change it; 0: none
};

}  // namespace txn

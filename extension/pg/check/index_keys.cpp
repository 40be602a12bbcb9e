#include "extension/pg/check/index_keys.hpp"

#include "extension/pg/check/attribute_walk.hpp"

extern "C" {
#include "access/itup.h"
#include "utils/rel.h"
}

namespace gcl {

// A key that lacks attributes sorts before the one that has them (index.missing-sorts-first).
int IndexKeys::operator()(std::span<const std::byte> a, std::span<const std::byte> b) {
  auto* first = reinterpret_cast<IndexTuple>(const_cast<std::byte*>(a.data()));
  auto* second = reinterpret_cast<IndexTuple>(const_cast<std::byte*>(b.data()));
  const int all = IndexRelationGetNumberOfKeyAttributes(index_);
  const int there = attributes_of(first, all);
  search_.prepare(all);
  for (int i = 0; i < there; ++i) {
    bool is_null;
    const Datum value = index_getattr(first, i + 1, RelationGetDescr(index_), &is_null);
    search_.add(index_, value, is_null);
  }
  if (const int order = compare_.compare(&search_, b); order != 0) return order;
  return there < attributes_of(second, all) ? -1 : 0;
}

const char* IndexKeys::defect(std::span<const std::byte> key) {
  return key_defect(RelationGetDescr(index_), IndexRelationGetNumberOfKeyAttributes(index_), key);
}

}  // namespace gcl

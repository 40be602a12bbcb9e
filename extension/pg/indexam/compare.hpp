// The comparator behind the B-link tree: PostgreSQL's order of a btree index, from its operator classes.
//
// index.key-is-tuple: A key is an IndexTuple; its t_tid is the engine's.  A shortened key that lacks key attributes has
//     INDEX_ALT_TID_MASK set and the number of those it has left in the first two bytes of its t_tid, which has no tid.
// index.missing-sorts-first: Attributes that a shortened key lacks sort before every value (minus infinity).
// index.sorts-as-nbtree: Nulls, DESC and NULLS FIRST sort as in nbtree: by the index's options, not by the type.
// index.first-attribute-stays: A shortened key keeps its first attribute.  So an integer that comes first lies right
//     behind the tuple's header, unless the key has nulls: most searches are decided by that, where the key lies.
#pragma once

extern "C" {
#include "postgres.h"

#include "access/itup.h"
#include "fmgr.h"
#include "utils/relcache.h"
}

#include "extension/engine/blink/entry.hpp"

namespace gcl {

// Values for leading attributes of an index; what the tree's `search` pointers point to.  Plain data.
struct SearchKey {
  // By the index's type; well-known functions are not called.
  enum class Order : uint8_t { kFunction, kInt4, kInt8 };
  struct Part {
    FmgrInfo* function;  // orders (value of the index, this value)
    Datum value;
    int64 number;  // the value, where the order is an integer's
    Oid collation;
    Order order;
    bool is_null;
    bool descending;
    bool nulls_first;
    Oid cross_type;  // type for which `cross` was looked up
    FmgrInfo cross;
  };
  int count = 0;
  Order by_head = Order::kFunction;  // of the first attribute (index.first-attribute-stays)
  Part part[INDEX_MAX_KEYS];

  // Adds the value of the next attribute.  `type`: the value's type; InvalidOid: the operator class's own.
  void add(Relation index, Datum value, bool is_null, Oid type = InvalidOid);
  // All key attributes of the tuple, which must outlive the search key.
  void fill(Relation index, IndexTuple tuple);
  // Before add() of a key whose parts were never filled.
  void prepare(int attributes) {
    for (int i = 0; i < attributes; ++i) part[i].cross_type = InvalidOid;
    count = 0;
  }
};

// How many key attributes a key of the index has (index.key-is-tuple); `all` that the index has.
int attributes_of(IndexTuple tuple, int all);

class TupleComparator final : public engine::blink::Comparator {
 public:
  explicit TupleComparator(Relation index);
  int compare(const void* search, std::span<const std::byte> key) override;
  engine::blink::IntegerOrder integer_order(const void* search) noexcept override;
  uint32_t equal_parts(std::span<const std::byte> left, std::span<const std::byte> right) override;
  uint32_t shorten(std::span<const std::byte> left, std::span<const std::byte> right, std::byte* to) override;

 private:
  int equal_attributes(IndexTuple low, IndexTuple high);

  Relation index_;
  TupleDesc description_;
  int key_attributes_;
};

}  // namespace gcl

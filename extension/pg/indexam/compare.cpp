#include "extension/pg/indexam/compare.hpp"

#include <bit>

extern "C" {
#include "access/genam.h"
#include "access/nbtree.h"
#include "catalog/pg_index.h"
#include "utils/fmgrprotos.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
}

namespace gcl {
namespace {

IndexTuple as_tuple(std::span<const std::byte> key) {
  return reinterpret_cast<IndexTuple>(const_cast<std::byte*>(key.data()));
}

template <class T>
int order(T a, T b) {
  return a < b ? -1 : a > b;
}

// Orders the search key's value against the index's: <0 if the search key sorts first.
int compare_part(const SearchKey::Part& part, Datum value, bool is_null) {
  if (part.is_null || is_null) {
    if (part.is_null && is_null) return 0;
    return part.is_null == part.nulls_first ? -1 : 1;
  }
  int result;
  switch (part.order) {
    case SearchKey::Order::kInt4:
      result = order(part.number, int64{DatumGetInt32(value)});
      break;
    case SearchKey::Order::kInt8:
      result = order(part.number, int64{DatumGetInt64(value)});
      break;
    default: {
      const int32 raw = DatumGetInt32(FunctionCall2Coll(part.function, part.collation, value, part.value));
      result = raw < 0 ? 1 : raw > 0 ? -1 : 0;
    }
  }
  return part.descending ? -result : result;
}

// Order and number of a part whose function is well known.
void find_known_order(SearchKey::Part& part) {
  const PGFunction function = part.function->fn_addr;
  part.order = SearchKey::Order::kFunction;
  if (function == btint4cmp || function == btint48cmp) part.order = SearchKey::Order::kInt4;
  if (function == btint8cmp || function == btint84cmp) part.order = SearchKey::Order::kInt8;
  if (part.order == SearchKey::Order::kFunction || part.is_null) return;
  const bool narrow = function == btint4cmp || function == btint84cmp;
  part.number = narrow ? int64{DatumGetInt32(part.value)} : DatumGetInt64(part.value);
}

// The ordering function of the index's type and another one; looked up once per scan.
FmgrInfo* cross_type_function(Relation index, int attribute, Oid type, SearchKey::Part& part) {
  if (part.cross_type != type) {
    const RegProcedure function =
        get_opfamily_proc(index->rd_opfamily[attribute], index->rd_opcintype[attribute], type, BTORDER_PROC);
    if (!RegProcedureIsValid(function)) {
      elog(ERROR, "missing support function %d(%u,%u) for attribute %d of index \"%s\"", BTORDER_PROC,
           index->rd_opcintype[attribute], type, attribute + 1, RelationGetRelationName(index));
    }
    fmgr_info(function, &part.cross);
    part.cross_type = type;
  }
  return &part.cross;
}

}  // namespace

int attributes_of(IndexTuple tuple, int all) {
  if ((tuple->t_info & INDEX_ALT_TID_MASK) == 0) return all;
  uint16 left;
  memcpy(&left, &tuple->t_tid, sizeof left);
  return left;
}

void SearchKey::add(Relation index, Datum value, bool is_null, Oid type) {
  const int attribute = count;
  Part& next = part[count++];
  const bool own_type = type == InvalidOid || type == index->rd_opcintype[attribute];
  next.function = own_type ? index_getprocinfo(index, attribute + 1, BTORDER_PROC)
                           : cross_type_function(index, attribute, type, next);
  next.collation = index->rd_indcollation[attribute];
  next.value = value;
  next.is_null = is_null;
  next.descending = (index->rd_indoption[attribute] & INDOPTION_DESC) != 0;
  next.nulls_first = (index->rd_indoption[attribute] & INDOPTION_NULLS_FIRST) != 0;
  find_known_order(next);
  if (attribute == 0) by_head = is_null ? Order::kFunction : next.order;
}

void SearchKey::fill(Relation index, IndexTuple tuple) {
  const int attributes = IndexRelationGetNumberOfKeyAttributes(index);
  prepare(attributes);
  for (int i = 0; i < attributes; ++i) {
    bool is_null;
    const Datum value = index_getattr(tuple, i + 1, RelationGetDescr(index), &is_null);
    add(index, value, is_null);
  }
}

TupleComparator::TupleComparator(Relation index)
    : index_(index),
      description_(RelationGetDescr(index)),
      key_attributes_(IndexRelationGetNumberOfKeyAttributes(index)) {}

int TupleComparator::compare(const void* search, std::span<const std::byte> key) {
  const auto& wanted = *static_cast<const SearchKey*>(search);
  IndexTuple tuple = as_tuple(key);
  const int there = attributes_of(tuple, wanted.count);
  const int both = Min(wanted.count, there);
  for (int i = 0; i < both; ++i) {
    bool is_null;
    const Datum value = index_getattr(tuple, i + 1, description_, &is_null);
    if (const int result = compare_part(wanted.part[i], value, is_null); result != 0) return result;
  }
  return wanted.count > there ? 1 : 0;  // (index.missing-sorts-first)
}

engine::blink::IntegerOrder TupleComparator::integer_order(const void* search) noexcept {
  const auto& wanted = *static_cast<const SearchKey*>(search);
  if (wanted.count == 0 || wanted.by_head == SearchKey::Order::kFunction) return {};
  // Where the first attribute lies (index.first-attribute-stays), and the flag for nulls, in the words of a key's first
  // bytes.
  static_assert(MAXALIGN(sizeof(IndexTupleData)) == sizeof(uint64_t) && offsetof(IndexTupleData, t_info) == 6);
  static_assert(std::endian::native == std::endian::little);
  return {.decides = true,
          .narrow = wanted.by_head == SearchKey::Order::kInt4,
          .descending = wanted.part[0].descending,
          .alone = wanted.count == 1,
          .unless = uint64_t{INDEX_NULL_MASK} << 48,
          .number = wanted.part[0].number};
}

// Leading key attributes of `low` and `high` that are equal by the operator class's order.
int TupleComparator::equal_attributes(IndexTuple low, IndexTuple high) {
  SearchKey key;
  key.prepare(key_attributes_);
  int equal = 0;
  for (; equal < key_attributes_; ++equal) {
    bool is_null;
    Datum value = index_getattr(low, equal + 1, description_, &is_null);
    key.add(index_, value, is_null);
    value = index_getattr(high, equal + 1, description_, &is_null);
    if (compare_part(key.part[equal], value, is_null) != 0) break;
  }
  return equal;
}

uint32_t TupleComparator::equal_parts(std::span<const std::byte> left, std::span<const std::byte> right) {
  const int equal = equal_attributes(as_tuple(left), as_tuple(right));
  return equal == key_attributes_ ? kAllParts : static_cast<uint32_t>(equal);
}

uint32_t TupleComparator::shorten(std::span<const std::byte> left, std::span<const std::byte> right, std::byte* to) {
  IndexTuple high = as_tuple(right);
  const int equal = equal_attributes(as_tuple(left), high);
  if (equal == key_attributes_) return 0;
  const auto kept = static_cast<uint16>(equal + 1);
  IndexTuple shorter = index_truncate_tuple(description_, high, kept);
  const Size bytes = IndexTupleSize(shorter);
  if (kept < key_attributes_) {
    shorter->t_info |= INDEX_ALT_TID_MASK;
    memcpy(&shorter->t_tid, &kept, sizeof kept);
  }
  memcpy(to, shorter, bytes);
  pfree(shorter);
  return static_cast<uint32_t>(bytes);
}

}  // namespace gcl

// Where a scan begins and ends: nbtree's preprocessed keys turned into the two ends of a range.
//
// The keys come sorted by attribute, with strategies in index order (a DESC column's are turned around).  Each end
// takes the equality keys of the leading attributes and one inequality that bounds it; nothing behind a gap helps.
#include "extension/pg/indexam/scan_state.hpp"

extern "C" {
#include "utils/rel.h"
}

namespace gcl {
namespace {

enum class End { kLow, kHigh };

bool bounds(StrategyNumber strategy, End end) {
  return end == End::kLow ? strategy == BTGreaterStrategyNumber || strategy == BTGreaterEqualStrategyNumber
                          : strategy == BTLessStrategyNumber || strategy == BTLessEqualStrategyNumber;
}

// What the keys say of one attribute, for one end.
struct Chosen {
  ScanKey key = nullptr;       // the equality, else the inequality that bounds this end
  bool excludes_null = false;  // some key of the attribute accepts no null
};

Chosen choose(BTScanOpaque keys, AttrNumber attribute, End end) {
  Chosen chosen;
  for (int i = 0; i < keys->numberOfKeys; ++i) {
    ScanKey key = &keys->keyData[i];
    if (key->sk_attno != attribute) continue;
    if ((key->sk_flags & SK_SEARCHNULL) == 0) chosen.excludes_null = true;
    if (key->sk_strategy == BTEqualStrategyNumber) {
      chosen.key = key;
      break;
    }
    if (chosen.key == nullptr && bounds(key->sk_strategy, end)) chosen.key = key;
  }
  return chosen;
}

// Nulls lie at one end of every attribute; a key that accepts none bounds the range there.
bool nulls_bound(Relation index, AttrNumber attribute, End end) {
  const bool first = (index->rd_indoption[attribute - 1] & INDOPTION_NULLS_FIRST) != 0;
  return first == (end == End::kLow);
}

engine::blink::Bound make_bound(IndexScanDesc scan, ScanState& state, End end) {
  Relation index = scan->indexRelation;
  const int attributes = IndexRelationGetNumberOfKeyAttributes(index);
  SearchKey& search = end == End::kLow ? state.low : state.high;
  search.count = 0;
  bool inclusive = true;
  bool more = true;
  while (more && search.count < attributes) {
    const auto attribute = static_cast<AttrNumber>(search.count + 1);
    const Chosen chosen = choose(state.keys(), attribute, end);
    if (chosen.key == nullptr) {
      if (!chosen.excludes_null || !nulls_bound(index, attribute, end)) break;
      search.add(index, Datum{0}, true);
      inclusive = false;
      break;
    }
    ScanKey key = chosen.key;
    if ((key->sk_flags & SK_ROW_HEADER) != 0) {
      // The first column of the row bounds the range, its equals included; the others are checked entry by entry.
      auto* first = reinterpret_cast<ScanKey>(DatumGetPointer(key->sk_argument));
      if ((first->sk_flags & SK_ISNULL) != 0) break;  // accepts nothing, wherever the scan begins
      search.add(index, first->sk_argument, false, first->sk_subtype);
      break;
    }
    const bool is_null = (key->sk_flags & SK_ISNULL) != 0;
    search.add(index, key->sk_argument, is_null, is_null ? InvalidOid : key->sk_subtype);
    inclusive = key->sk_strategy != BTGreaterStrategyNumber && key->sk_strategy != BTLessStrategyNumber;
    more = inclusive;
  }
  if (search.count == 0) return {};
  return {.search = &search, .inclusive = inclusive, .complete = search.count == attributes};
}

}  // namespace

engine::blink::Range scan_range(IndexScanDesc scan, ScanState& state) {
  // Look-ups of cross-type functions are kept in the search keys.
  MemoryContext before = MemoryContextSwitchTo(state.context);
  const engine::blink::Range range{.low = make_bound(scan, state, End::kLow),
                                   .high = make_bound(scan, state, End::kHigh)};
  MemoryContextSwitchTo(before);
  return range;
}

}  // namespace gcl

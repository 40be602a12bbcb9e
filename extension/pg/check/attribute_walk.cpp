#include "extension/pg/check/attribute_walk.hpp"

#include "extension/engine/heap/row.hpp"
#include "extension/pg/indexam/compare.hpp"

extern "C" {
#include "access/itup.h"
#include "access/tupmacs.h"
}

namespace gcl {

namespace {

char message[160];

[[gnu::format(printf, 1, 2)]] const char* defect(const char* format, ...) {
  va_list values;
  va_start(values, format);
  (void)pg_vsnprintf(message, sizeof message, format, values);
  va_end(values);
  return message;
}

// Bytes of the varlena at `value`; 0: its header is none, or goes beyond `left` bytes.
uint32_t varlena_bytes(const char* value, uint32_t left) {
  if (left < 1) return 0;
  if (VARATT_IS_EXTERNAL(value)) {
    if (left < VARHDRSZ_EXTERNAL || VARTAG_EXTERNAL(value) != VARTAG_ONDISK) return 0;
    return VARSIZE_EXTERNAL(value);
  }
  if (VARATT_IS_SHORT(value)) return VARSIZE_SHORT(value);
  if (left < VARHDRSZ) return 0;
  const uint32_t bytes = VARSIZE(value);
  const uint32_t least = VARATT_IS_COMPRESSED(value) ? uint32_t{VARHDRSZ_COMPRESSED} : uint32_t{VARHDRSZ};
  return bytes < least ? 0 : bytes;
}

// Goes through the attributes at `data` as heap_deform_tuple() would.
const char* walk(TupleDesc description, int attributes, const bits8* nulls, const char* data, uint32_t bytes) {
  uint32_t offset = 0;
  for (int i = 0; i < attributes; ++i) {
    if (nulls != nullptr && att_isnull(i, nulls)) continue;
    const Form_pg_attribute attribute = TupleDescAttr(description, i);
    const bool padded = attribute->attlen != -1 || offset >= bytes || data[offset] == 0;
    if (padded) offset = uint32_t(att_align_nominal(offset, attribute->attalign));
    uint32_t size = attribute->attlen > 0 ? uint32_t(attribute->attlen) : 0;
    if (offset < bytes && attribute->attlen == -1) size = varlena_bytes(data + offset, bytes - offset);
    if (offset < bytes && attribute->attlen == -2) size = uint32_t(strnlen(data + offset, bytes - offset) + 1);
    if (size == 0)
      return defect("attribute %d at offset %u has no valid length, of %u bytes in all", i + 1, offset, bytes);
    if (offset > bytes || size > bytes - offset)
      return defect("attribute %d at offset %u with length %u ends beyond the %u bytes there are", i + 1, offset, size,
                    bytes);
    offset += size;
  }
  return nullptr;
}

}  // namespace

const char* row_defect(TupleDesc description, std::span<const std::byte> row) {
  engine::RowHeader header;
  memcpy(&header, row.data(), sizeof header);
  const int attributes = header.natts();
  const bool has_nulls = (header.flags() & engine::kHasNull) != 0;
  const auto* bytes = reinterpret_cast<const char*>(row.data());
  const auto data = uint32_t(MAXALIGN(SizeofHeapTupleHeader + (has_nulls ? BITMAPLEN(attributes) : 0)));
  if (attributes > description->natts || data > row.size()) return defect("row has %d attributes", attributes);
  const bits8* nulls = has_nulls ? reinterpret_cast<const bits8*>(bytes + SizeofHeapTupleHeader) : nullptr;
  return walk(description, attributes, nulls, bytes + data, uint32_t(row.size()) - data);
}

const char* key_defect(TupleDesc description, int key_attributes, std::span<const std::byte> key) {
  if (key.size() < sizeof(IndexTupleData)) return defect("it has %zu bytes", key.size());
  auto* tuple = reinterpret_cast<IndexTuple>(const_cast<std::byte*>(key.data()));
  const bool shortened = (tuple->t_info & INDEX_ALT_TID_MASK) != 0;
  // A key that was shortened to all key attributes has lost the columns behind them.
  const bool pivot = engine::blink::is_pivot(key.data());
  const int all = pivot ? key_attributes : description->natts;
  const int attributes = attributes_of(tuple, all);
  if (IndexTupleSize(tuple) != key.size())
    return defect("it says that it has %zu bytes, and has %zu", IndexTupleSize(tuple), key.size());
  if (shortened && (!pivot || attributes < 1 || attributes >= key_attributes))
    return defect("it was shortened to %d attributes", attributes);
  const auto data = uint32_t(IndexInfoFindDataOffset(tuple->t_info));
  if (data > key.size()) return defect("its data begin behind its %zu bytes", key.size());
  const auto* bytes = reinterpret_cast<const char*>(key.data());
  const bits8* nulls =
      IndexTupleHasNulls(tuple) ? reinterpret_cast<const bits8*>(bytes + sizeof(IndexTupleData)) : nullptr;
  return walk(description, attributes, nulls, bytes + data, uint32_t(key.size()) - data);
}

}  // namespace gcl

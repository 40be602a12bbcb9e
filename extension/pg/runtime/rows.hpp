// Rows of a set-returning function, put together column by column.
#pragma once

#include "extension/pg/boundary/pg.hpp"

extern "C" {
#include "funcapi.h"
#include "utils/builtins.h"
#include "utils/timestamp.h"
#include "utils/tuplestore.h"
}

namespace gcl {

// ERROR (55000) if this server takes part in no pool.  Does not touch the pool.
void require_pool();
// ERROR (55000): the function was made by the script of another version than the library's.
[[noreturn]] void raise_other_version(int columns, int expected);
// Where the rows of the set-returning function that is being called go.
ReturnSetInfo* rows_of(FunctionCallInfo fcinfo);

template <int kColumns>
class Row {
 public:
  Row() { memset(nulls_, true, sizeof nulls_); }
  Row& number(uint64_t value) { return add(Int64GetDatum(int64(value))); }
  Row& integer(int64 value) { return add(Int32GetDatum(int32(value))); }
  Row& text(const char* value) { return value == nullptr ? null() : add(CStringGetTextDatum(value)); }
  Row& real(double value) { return add(Float8GetDatum(value)); }
  Row& truth(bool value) { return add(BoolGetDatum(value)); }
  Row& oid(Oid value) { return OidIsValid(value) ? add(ObjectIdGetDatum(value)) : null(); }
  Row& time(TimestampTz value) { return value == 0 ? null() : add(TimestampTzGetDatum(value)); }
  Row& null(int columns = 1) {
    at_ += columns;
    return *this;
  }
  // REQUIRES: all columns were added.  ERROR if the function, as the database has it, has others.
  void put(ReturnSetInfo* result) {
    if (at_ != kColumns || result->setDesc->natts != kColumns) raise_other_version(result->setDesc->natts, at_);
    tuplestore_putvalues(result->setResult, result->setDesc, values_, nulls_);
  }

 private:
  Row& add(Datum value) {
    values_[at_] = value;
    nulls_[at_++] = false;
    return *this;
  }
  Datum values_[kColumns]{};
  bool nulls_[kColumns];
  int at_ = 0;
};

}  // namespace gcl

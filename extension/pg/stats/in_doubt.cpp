// The function behind gcl_in_doubt: transactions that only their own servers can decide, and these are away.
#include "extension/pg/boundary/pg_call.hpp"
#include "extension/pg/runtime/backend.hpp"
#include "extension/pg/runtime/raise.hpp"
#include "extension/pg/runtime/rows.hpp"

extern "C" {
PG_FUNCTION_INFO_V1(gcl_in_doubt_get);
}

using namespace gcl;  // NOLINT: the functions below are PostgreSQL's, in the global namespace

Datum gcl_in_doubt_get(PG_FUNCTION_ARGS) {
  engine::TxnSystem& system = txns();
  ReturnSetInfo* const result = rows_of(fcinfo);
  const coherence::Errc outcome = pg_entry([&] {
    const auto found = system.in_doubt();
    if (!found) return found.error();
    for (const engine::InDoubt& one : *found)
      pg_call([&] {
        Row<3> row;
        row.integer(one.id.node().value).number(one.id.sequence()).number(one.host_xid);
        row.put(result);
      });
    return coherence::Errc::kOk;
  });
  if (outcome != coherence::Errc::kOk) raise(outcome, nullptr);
  return Datum{0};
}

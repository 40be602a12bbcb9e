// The pool's memory nodes, and what their daemons say of themselves.
#include "extension/pg/runtime/backend.hpp"
#include "extension/pg/runtime/rows.hpp"

extern "C" {
#include "miscadmin.h"
PG_FUNCTION_INFO_V1(gcl_stat_memory_nodes_get);
}

using namespace gcl;  // NOLINT: the function below is PostgreSQL's, in the global namespace

// One row per memory node.  Each that has a daemon is asked, one after the other (stats.asked-with-a-bound).
Datum gcl_stat_memory_nodes_get(PG_FUNCTION_ARGS) {
  coherence::Pool& p = pool().coherence_pool();
  ReturnSetInfo* const result = rows_of(fcinfo);
  for (uint32_t n = 0; n < p.memory_nodes(); ++n) {
    CHECK_FOR_INTERRUPTS();
    const coherence::MemoryNodeId id{uint8_t(n)};
    coherence::MemoryNodeFigures figures;
    coherence::Problem problem;
    const coherence::Status asked = pg_entry([&] { return p.figures(id, &figures, session().interrupts(), &problem); });
    CHECK_FOR_INTERRUPTS();
    const bool is_mapped = asked.error() == coherence::Errc::kNotFound;
    Row<13> row;
    row.integer(int64(n)).number(p.pages(id));
    row.text(figures.address[0] != '\0' ? figures.address : nullptr);
    const char* const serving = n < p.settled_memory_nodes() ? "serving" : "not used yet";
    row.text(asked ? serving : is_mapped ? "mapped" : "no answer").text(asked || is_mapped ? nullptr : problem.text);
    if (asked) {
      row.time(GetCurrentTimestamp() - TimestampTz(figures.up_us)).number(figures.links);
      row.number(figures.batches).number(figures.operations).number(figures.bytes_in).number(figures.bytes_out);
      row.real(double(figures.user_us) / 1000).real(double(figures.system_us) / 1000);
    } else {
      row.null(8);
    }
    row.put(result);
  }
  return Datum{0};
}

// The functions behind the gcl_stat_* views: counters of this node's sessions, summed.
#include "coherence/stats/counters.hpp"

#include "extension/pg/ddl/node/ddl_node_state.hpp"
#include "extension/pg/ddl/record/ddl_describe.hpp"
#include "extension/pg/runtime/backend.hpp"
#include "extension/pg/runtime/database_locale.hpp"
#include "extension/pg/runtime/rows.hpp"
#include "extension/pg/runtime/version.hpp"

extern "C" {
PG_FUNCTION_INFO_V1(gcl_stat_node_get);
PG_FUNCTION_INFO_V1(gcl_stat_counters);
PG_FUNCTION_INFO_V1(gcl_check_preloaded);
PG_FUNCTION_INFO_V1(gcl_version);
}

namespace gcl {

using bufmgr::Count;
using coherence::Counter;

extern bool preloaded;

namespace {

uint64_t sum(Counter c) {
  const coherence::Node& node = node_pool()->coherence_node();
  uint64_t total = 0;
  for (uint32_t i = 0; i < node.sessions_max(); ++i) total += node.counters(coherence::SessionId{uint16_t(i)}).get(c);
  return total;
}

uint64_t sum(Count c) {
  uint64_t total = 0;
  for (uint32_t i = 0; i < node_pool()->coherence_node().sessions_max(); ++i)
    total += node_pool()->counts(coherence::SessionId{uint16_t(i)}).get(c);
  return total;
}

Datum number(uint64_t n) { return Int64GetDatum(int64(n)); }

}  // namespace
}  // namespace gcl

using namespace gcl;  // NOLINT: the functions below are PostgreSQL's, in the global namespace

Datum gcl_check_preloaded(PG_FUNCTION_ARGS) {
  if (!preloaded)
    ereport(ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
            errmsg("gcl must be loaded via shared_preload_libraries"),
            errhint("Add gcl to shared_preload_libraries, set gcl.pool, and restart the server."));
  if (node_configured()) require_database_locale();
  PG_RETURN_VOID();
}

Datum gcl_version(PG_FUNCTION_ARGS) { PG_RETURN_TEXT_P(cstring_to_text(kVersion)); }

// One row: this node.
Datum gcl_stat_node_get(PG_FUNCTION_ARGS) {
  require_pool();
  TupleDesc desc;
  if (get_call_result_type(fcinfo, nullptr, &desc) != TYPEFUNC_COMPOSITE) elog(ERROR, "return type must be a row type");
  const uint64_t fixes = sum(Count::kFixes) + sum(Count::kPeeks) - sum(Count::kFurtherGuards);
  const uint64_t misses = sum(Counter::kMissShared) + sum(Counter::kMissExclusive);
  const uint64_t grants_sent = sum(Counter::kGrantSSent) + sum(Counter::kGrantMSent);
  const Datum values[] = {
      Int32GetDatum(node_pool()->node().value),
      number(fixes > misses ? fixes - misses : 0),
      number(misses),
      number(sum(Counter::kBatches)),
      number(sum(Counter::kPeerInvSent) + sum(Counter::kPeerWrSent) + sum(Counter::kPeerRdSent)),
      number(sum(Counter::kPeerInvReceived) + sum(Counter::kPeerWrReceived) + sum(Counter::kPeerRdReceived)),
      number(grants_sent),
      number(sum(Counter::kGrantSReceived) + sum(Counter::kGrantMReceived)),
      number(sum(Count::kEvicted)),
      number(sum(Count::kMiniTransactions)),
      number(sum(Count::kRedoBytes)),
      number(node_pool()->frames()),
      number(node_pool()->pages()),
      BoolGetDatum(node_pool()->fenced())};
  const bool nulls[lengthof(values)] = {};
  PG_RETURN_DATUM(
      HeapTupleGetDatum(heap_form_tuple(BlessTupleDesc(desc), const_cast<Datum*>(values), const_cast<bool*>(nulls))));
}

// All counters of this node, by name.
Datum gcl_stat_counters(PG_FUNCTION_ARGS) {
  require_pool();
  ReturnSetInfo* const result = rows_of(fcinfo);
  auto put = [&](const char* layer, const char* name, uint64_t value) {
    Row<3>().text(layer).text(name).number(value).put(result);
  };
  for (int i = 0; i < coherence::kCounters; ++i) put("coherence", coherence::counter_name(Counter(i)), sum(Counter(i)));
  for (int i = 0; i < bufmgr::kCounts; ++i) put("bufmgr", bufmgr::count_name(Count(i)), sum(Count(i)));
  const DdlCounts& ddl = ddl_node_state().counts;
  for (int i = 1; i < engine::kDdlKinds; ++i)
    put("ddl", psprintf("%s sent", ddl_kind_name(engine::DdlKind(i))), ddl.messages[i].load(std::memory_order_relaxed));
  put("ddl", "answers found late", ddl.answers_found_late.load(std::memory_order_relaxed));
  const auto& holds = node_holds()->counts();
  put("serializable", "waits for pages", holds.waits.load(std::memory_order_relaxed));
  put("serializable", "pages given up", holds.given_up.load(std::memory_order_relaxed));
  return Datum{0};
}

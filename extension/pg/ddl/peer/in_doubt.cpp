#include "extension/pg/ddl/peer/in_doubt.hpp"

#include "extension/pg/ddl/base/ddl_port.hpp"
#include "extension/pg/ddl/classify/cluster_scope.hpp"
#include "extension/pg/ddl/node/data_life.hpp"
#include "extension/pg/ddl/peer/primary_copy.hpp"

namespace gcl {
namespace {

// Its slot has the id until it is decided (ddl_log.id-before-entry, ddl_log.undecided-stays).
bool is_ddl(engine::TxnId id) {
  for (int i = 0; i < ddl_channel().slots(); ++i)
    if (engine::DdlSlot slot = ddl_slot(i); slot.owner().held() && slot.txn() == id.raw) return true;
  ddl_require_unfenced();
  return false;
}

[[noreturn]] void refuse(engine::TxnId id, bool serves) {
  const int node = id.node().value;
  if (serves)
    ereport(ERROR, (errcode(ERRCODE_OBJECT_IN_USE), errmsg("primary %d takes part in the cluster", node),
                    errhint("It decides by itself what it had left in doubt.")));
  ereport(ERROR, (errcode(ERRCODE_UNDEFINED_OBJECT),
                  errmsg("transaction %llu of primary %d is not in doubt", (unsigned long long)id.sequence(), node),
                  errhint("gcl_in_doubt shows those that are.")));
  pg_unreachable();
}

const char* name_of(bool commit) { return commit ? "committed" : "rolled back"; }

}  // namespace

void resolve_in_doubt(int node, uint64_t sequence, bool commit) {
  require_cluster();
  require_other_primary(node);
  const coherence::NodeId away{uint8_t(node)};
  const engine::TxnId id = engine::TxnId::make(away, sequence);
  if (ddl_primary(away).serves()) refuse(id, true);
  if (id.sequence() != sequence || !ddl_is_in_doubt(id)) refuse(id, false);
  const bool ddl = is_ddl(id);
  if (ddl) end_life_of(away.value);  // ddl.doubt-decided-without-it: before
  const DdlOutcome outcome = ddl_decide_in_doubt(id, commit);
  if (outcome == DdlOutcome::kUndecided) refuse(id, ddl_primary(away).serves());
  const bool committed = outcome == DdlOutcome::kCommitted;
  ereport(LOG, (errmsg("gcl: transaction %llu of primary %d, which was in doubt, is %s", (unsigned long long)sequence,
                       node, name_of(committed))));
  if (ddl) {
    ddl_wake_node(ddl_node());
    ereport(NOTICE, (errmsg("it was DDL: the data directory of primary %d is refused from now on", node),
                     errhint("Call gcl_forget_primary(%d), so that the DDL log does not wait for it.", node)));
  }
  if (committed != commit)
    ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                    errmsg("transaction %llu of primary %d was decided before: it is %s", (unsigned long long)sequence,
                           node, name_of(committed))));
}

}  // namespace gcl

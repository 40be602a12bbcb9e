#include "extension/pg/ddl/peer/primary_copy.hpp"

#include "extension/oid_range.hpp"
#include "extension/pg/ddl/base/ddl_port.hpp"
#include "extension/pg/ddl/classify/cluster_scope.hpp"
#include "extension/pg/ddl/coordinate/ddl_transaction.hpp"
#include "extension/pg/ddl/node/data_life.hpp"
#include "extension/pg/ddl/node/ddl_node_state.hpp"
#include "extension/pg/ddl/node/ddl_position.hpp"
#include "extension/pg/ddl/peer/log_end.hpp"
#include "extension/pg/runtime/ddl_hooks.hpp"

extern "C" {
#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xact.h"
#include "catalog/pg_database.h"
#include "utils/backend_progress.h"
#include "utils/backend_status.h"
#include "utils/rel.h"
}

namespace gcl {
namespace {

struct PreparedCopy {  // in this transaction
  uint8_t node;
  uint64_t life;  // 0: none
} copy;

coherence::NodeId id_of(int node) { return coherence::NodeId{uint8_t(node)}; }

bool backup_runs() {
  pgstat_clear_backend_activity_snapshot();
  for (int i = 1; i <= pgstat_fetch_stat_numbackends(); ++i)
    if (pgstat_fetch_stat_local_beentry(i)->backendStatus.st_progress_command == PROGRESS_COMMAND_BASEBACKUP)
      return true;
  return false;
}

// Files that a backup copies after the end of the transaction may be newer than the positions in it.
void require_whole_copy() {
  if (backup_runs())
    ereport(ERROR, (errcode(ERRCODE_OBJECT_IN_USE), errmsg("a base backup of this server has not ended"),
                    errhint("COMMIT when it has; the one that was being made is not to be used.")));
}

// Still under the whole cluster's DDL lock, if the transaction commits.
void on_end(XactEvent event, void*) {
  if (copy.life != 0 && event == XACT_EVENT_PRE_COMMIT) {
    require_whole_copy();
    return ddl_note_life(id_of(copy.node), copy.life);
  }
  if (copy.life == 0 || (event != XACT_EVENT_COMMIT && event != XACT_EVENT_ABORT)) return;
  const bool made = event == XACT_EVENT_COMMIT && !ddl_pool_fenced();
  end_life_of_copy(copy.node, made ? copy.life : 0);
  if (made) ddl_channel().set_applied(id_of(copy.node), ddl_channel().applied(ddl_node_id()));
  copy = {};
}

void require_absent(int node) {
  const coherence::NodeInfo info = ddl_primary(id_of(node));
  if (info.dead())
    ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                    errmsg("primary %d has died, and what it had is not repaired yet", node),
                    errhint("gcl_stat_cluster shows it until then, and gclctl status what its repair waits for.")));
  if (!info.serves() && ddl_channel().membership(id_of(node)) == 0) return;
  ereport(ERROR, (errcode(ERRCODE_OBJECT_IN_USE), errmsg("primary %d takes part in the cluster", node),
                  errhint("Stop it first.")));
}

void require_decided(int node) {
  const size_t count = ddl_in_doubt(id_of(node));
  if (count == 0) return;
  ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                  errmsg("primary %d has died with transactions that only its own server can decide", node),
                  errdetail("gcl_in_doubt shows %zu.", count),
                  errhint("Start it once more: then they are decided. If it is lost: SELECT gcl_resolve_in_doubt(node, "
                          "id, commit).")));
}

void lock_whole_cluster() {
  ddl_attach_for_any_locale();
  open_ddl_transaction(DdlRight::kWhole, false, true);
}

// All DDL so far, this primary's own as well, is in the catalogs here, and so in those of a copy.
void advance_position(Oid database, uint64_t count) {
  DdlPosition position = load_position(database);
  position.applied = Max(position.applied, count);
  set_position(database, position);
}

void advance_positions() {
  const uint64_t count = ddl_log_extent().count;
  Relation catalog = table_open(DatabaseRelationId, AccessShareLock);
  TableScanDesc scan = table_beginscan_catalog(catalog, 0, nullptr);
  while (HeapTuple tuple = heap_getnext(scan, ForwardScanDirection))
    advance_position(reinterpret_cast<Form_pg_database>(GETSTRUCT(tuple))->oid, count);
  table_endscan(scan);
  table_close(catalog, AccessShareLock);
  advance_position(InvalidOid, count);
}

}  // namespace

void require_other_primary(int node) {
  const int most = int(ddl_channel().nodes_max()) - 1;
  if (node >= 1 && node <= most && node != ddl_node()) return;
  ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("there can be no other primary %d", node),
                  errdetail("This is primary %d, and the pool has room for primaries 1 to %d.", ddl_node(), most)));
}

Oid prepare_copy(int node) {
  RequireTransactionBlock(true, "gcl_prepare_copy");
  if (GetCurrentTransactionNestLevel() > 1)
    ereport(ERROR, (errcode(ERRCODE_ACTIVE_SQL_TRANSACTION),
                    errmsg("gcl_prepare_copy() cannot be called behind a savepoint")));
  require_cluster();
  require_other_primary(node);
  if (copy.life != 0)
    ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                    errmsg("this transaction has prepared a copy for primary %d already", copy.node)));
  lock_whole_cluster();
  require_absent(node);
  if (!*ddl_serving_flag() || ddl_node_state().behind || !has_applied_all())
    ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                    errmsg("this primary has not caught up with the DDL of the others"),
                    errhint("Take the copy from one that has applied all entries, by gcl_stat_ddl_log_kept.")));
  advance_positions();
  static bool registered = false;
  if (!registered) RegisterXactCallback(on_end, nullptr);
  registered = true;
  copy = {uint8_t(node), write_life_of_copy(uint8_t(node))};
  return oids_of_node(node).first;
}

void forget_primary(int node) {
  require_cluster();
  require_other_primary(node);
  require_absent(node);
  require_decided(node);  // DDL that is in doubt has the lock
  lock_whole_cluster();
  require_absent(node);
  end_life_of(uint8_t(node));
  ddl_channel().set_applied(id_of(node), engine::DdlApplied{});
}

}  // namespace gcl

#include "extension/pg/ddl/objects/databases.hpp"

#include "extension/pg/ddl/node/ddl_node_state.hpp"
#include "extension/pg/ddl/node/ddl_position.hpp"

extern "C" {
#include "access/heapam.h"
#include "access/htup_details.h"
#include "access/table.h"
#include "access/tableam.h"
#include "access/xloginsert.h"
#include "catalog/pg_database.h"
#include "catalog/pg_subscription.h"
#include "catalog/pg_tablespace.h"
#include "commands/dbcommands.h"
#include "commands/dbcommands_xlog.h"
#include "commands/defrem.h"
#include "common/file_utils.h"
#include "common/relpath.h"
#include "nodes/makefuncs.h"
#include "parser/parse_node.h"
#include "replication/slot.h"
#include "storage/bufmgr.h"
#include "storage/lmgr.h"
#include "storage/md.h"
#include "storage/procarray.h"
#include "utils/acl.h"
#include "utils/inval.h"
#include "utils/syscache.h"
}

#include <sys/stat.h>

#include <csignal>

namespace gcl {
namespace {

// The database that this transaction has made: one at most, because nothing else may stand in its transaction.
struct Made {
  Oid database;  // InvalidOid: none
  Oid tablespace;
} made_database;

bool find_database_row(Oid database, FormData_pg_database* form) {
  HeapTuple tuple = SearchSysCache1(DATABASEOID, ObjectIdGetDatum(database));
  if (!HeapTupleIsValid(tuple)) return false;
  memcpy(form, GETSTRUCT(tuple), offsetof(FormData_pg_database, dattablespace) + sizeof(Oid));
  ReleaseSysCache(tuple);
  return true;
}

bool is_there_with_extension(const char* name) {
  const Oid database = get_database_oid(name, true);
  return OidIsValid(database) && has_extension(database);
}

DefElem* find_option(const CreatedbStmt* statement, const char* name) {
  ListCell* cell;
  foreach (cell, statement->options)
    if (strcmp(lfirst_node(DefElem, cell)->defname, name) == 0) return lfirst_node(DefElem, cell);
  return nullptr;
}

const char* template_of(const CreatedbStmt* statement) {
  DefElem* option = find_option(statement, "template");
  return option && option->arg ? defGetString(option) : "template1";
}

void check_drop_here(const char* database) {
  if (!is_there_with_extension(database)) return;
  ereport(ERROR, (errcode(ERRCODE_DEPENDENT_OBJECTS_STILL_EXIST),
                  errmsg("cannot drop database \"%s\" on this primary only while the extension gcl is in it", database),
                  errdetail("Its gcl tables belong to all primaries."),
                  errhint("RESET gcl.local_administration, and DROP DATABASE drops it on every primary.")));
}

void check_create(const char* source) {
  if (!is_there_with_extension(source)) return;
  ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                  errmsg("cannot copy database \"%s\" while the extension gcl is in it", source),
                  errdetail("The copy would share the pages of its gcl tables."),
                  errhint("Create the database from another template, and restore a pg_dump into it.")));
}

void check_rename(const char* database) {
  if (!is_there_with_extension(database)) return;
  ereport(ERROR, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
                  errmsg("cannot rename database \"%s\" while the extension gcl is in it", database),
                  errdetail("The history of its gcl tables goes by its name.")));
}

// As PostgreSQL does when CREATE DATABASE itself fails.
void remove_files(const Made& database) {
  char* path = GetDatabasePath(database.database, database.tablespace);
  DropDatabaseBuffers(database.database);
  ForgetDatabaseSyncRequests(database.database);
  if (!rmtree(path, true))
    ereport(WARNING, (errmsg("some useless files may be left behind in old database directory \"%s\"", path)));
  xl_dbase_drop_rec record{};
  record.db_id = database.database;
  record.ntablespaces = 1;
  XLogBeginInsert();
  XLogRegisterData(reinterpret_cast<char*>(&record), MinSizeOfDbaseDropRec);
  XLogRegisterData(const_cast<char*>(reinterpret_cast<const char*>(&database.tablespace)), sizeof(Oid));
  (void)XLogInsert(RM_DBASE_ID, XLOG_DBASE_DROP | XLR_SPECIAL_REL_UPDATE);
}

// A crash in the middle of an earlier attempt has left them.  The OID is the coordinator's: no other database has it.
void remove_files_of_crashed_attempt(Oid database) {
  if (SearchSysCacheExists1(DATABASEOID, ObjectIdGetDatum(database))) return;
  List* tablespaces = NIL;
  Relation catalog = table_open(TableSpaceRelationId, AccessShareLock);
  TableScanDesc scan = table_beginscan_catalog(catalog, 0, nullptr);
  while (HeapTuple row = heap_getnext(scan, ForwardScanDirection))
    tablespaces = lappend_oid(tablespaces, reinterpret_cast<FormData_pg_tablespace*>(GETSTRUCT(row))->oid);
  table_endscan(scan);
  table_close(catalog, AccessShareLock);
  ListCell* cell;
  foreach (cell, tablespaces) {
    struct stat found;
    const Made left{database, lfirst_oid(cell)};
    if (left.tablespace == GLOBALTABLESPACE_OID || lstat(GetDatabasePath(database, left.tablespace), &found) != 0)
      continue;
    ereport(LOG, (errmsg("gcl: removing the files of database %u, which were left by a crash", database)));
    remove_files(left);
  }
}

// Nothing may raise in a rollback (ddl.callbacks-never-raise): a warning says what is left behind.
void remove_files_of_rolled_back() {
  const Made database = made_database;
  made_database = {};
  MemoryContext caller = CurrentMemoryContext;
  PG_TRY();
  { remove_files(database); }
  PG_CATCH();
  {
    MemoryContextSwitchTo(caller);
    FlushErrorState();
    ereport(WARNING, (errmsg("the files of database %u, which was rolled back, are left behind", database.database)));
  }
  PG_END_TRY();
}

void on_transaction(XactEvent event, void*) {
  if (event == XACT_EVENT_ABORT && OidIsValid(made_database.database)) remove_files_of_rolled_back();
  if (event == XACT_EVENT_COMMIT || event == XACT_EVENT_ABORT) made_database = {};
}

// Sessions that want to connect wait from now on.
Oid lock_database(const char* name) {
  for (;;) {
    const Oid database = get_database_oid(name, true);
    if (!OidIsValid(database)) return database;
    LockSharedObject(DatabaseRelationId, database, 0, AccessExclusiveLock);
    AcceptInvalidationMessages();
    if (get_database_oid(name, true) == database) return database;
    UnlockSharedObject(DatabaseRelationId, database, 0, AccessExclusiveLock);
  }
}

void check_kind(Oid database, const char* name) {
  FormData_pg_database form;
  if (!pg_database_ownercheck(database, GetUserId())) aclcheck_error(ACLCHECK_NOT_OWNER, OBJECT_DATABASE, name);
  if (find_database_row(database, &form) && form.datistemplate)
    ereport(ERROR, (errcode(ERRCODE_WRONG_OBJECT_TYPE), errmsg("cannot drop a template database")));
  if (database == MyDatabaseId)
    ereport(ERROR, (errcode(ERRCODE_OBJECT_IN_USE), errmsg("cannot drop the currently open database")));
}

void check_unused(Oid database, const char* name, bool force) {
  int slots, active_slots, sessions, prepared;
  (void)ReplicationSlotsCountDBSlots(database, &slots, &active_slots);
  if (active_slots > 0)
    ereport(ERROR, (errcode(ERRCODE_OBJECT_IN_USE),
                    errmsg("database \"%s\" is used by an active logical replication slot", name)));
  if (CountDBSubscriptions(database) > 0)
    ereport(ERROR, (errcode(ERRCODE_OBJECT_IN_USE),
                    errmsg("database \"%s\" is being used by a logical replication subscription", name)));
  end_idle_workers(name);
  if (force) TerminateOtherDBBackends(database);
  if (CountOtherDBBackends(database, &sessions, &prepared))
    ereport(ERROR, (errcode(ERRCODE_OBJECT_IN_USE), errmsg("database \"%s\" is being accessed by other users", name),
                    errdetail("Sessions that use it: %d; prepared transactions: %d.", sessions, prepared)));
}

bool is_forced(const DropdbStmt* statement) {
  ListCell* cell;
  foreach (cell, statement->options)
    if (strcmp(lfirst_node(DefElem, cell)->defname, "force") == 0) return true;
  return false;
}

// The database that no session may be in while the statement runs; null: none.
const char* database_to_be_left(const Node* statement) {
  if (IsA(statement, DropdbStmt)) return reinterpret_cast<const DropdbStmt*>(statement)->dbname;
  if (IsA(statement, CreatedbStmt)) return template_of(reinterpret_cast<const CreatedbStmt*>(statement));
  if (IsA(statement, AlterDatabaseStmt)) return reinterpret_cast<const AlterDatabaseStmt*>(statement)->dbname;
  if (!IsA(statement, RenameStmt)) return nullptr;
  const auto* rename = reinterpret_cast<const RenameStmt*>(statement);
  return rename->renameType == OBJECT_DATABASE ? rename->subname : nullptr;
}

}  // namespace

void install_database_hooks() { RegisterXactCallback(on_transaction, nullptr); }

bool has_extension(Oid database) { return load_position(database).extension != 0; }

void check_database_statement(const Node* statement, bool here) {
  if (IsA(statement, DropdbStmt) && here) check_drop_here(reinterpret_cast<const DropdbStmt*>(statement)->dbname);
  if (IsA(statement, CreatedbStmt)) check_create(template_of(reinterpret_cast<const CreatedbStmt*>(statement)));
  if (!IsA(statement, RenameStmt)) return;
  const auto* rename = reinterpret_cast<const RenameStmt*>(statement);
  if (rename->renameType == OBJECT_DATABASE) check_rename(rename->subname);
}

void leave_database(const Node* statement) {
  if (const char* database = database_to_be_left(statement)) end_idle_workers(database);
}

void database_made(const char* name) {
  FormData_pg_database form;
  const Oid database = get_database_oid(name, false);
  if (!find_database_row(database, &form)) elog(ERROR, "gcl: database \"%s\" is not there", name);
  made_database = {database, form.dattablespace};
  forget_position(database);  // of an older one that had the OID
}

void make_database_again(CreatedbStmt* statement, const DdlRecord* record) {
  check_database_statement(reinterpret_cast<Node*>(statement), false);
  leave_database(reinterpret_cast<Node*>(statement));
  const auto* coordinator = static_cast<DdlObject*>(linitial(record->made));
  if (!find_option(statement, "oid")) {
    char* oid = psprintf("%u", coordinator->oid);
    statement->options =
        lappend(statement->options, makeDefElem(pstrdup("oid"), reinterpret_cast<Node*>(makeFloat(oid)), -1));
  }
  remove_files_of_crashed_attempt(coordinator->oid);
  ParseState* state = make_parsestate(nullptr);
  state->p_sourcetext = record->sql;
  (void)createdb(state, statement);
  free_parsestate(state);
  CommandCounterIncrement();
  database_made(statement->dbname);
}

Oid lock_database_to_drop(const DropdbStmt* statement) {
  const Oid database = lock_database(statement->dbname);
  if (!OidIsValid(database)) return database;
  check_kind(database, statement->dbname);
  check_unused(database, statement->dbname, is_forced(statement));
  forget_position(database);  // if it is dropped; while nothing has been done that could not be undone
  return database;
}

bool find_databases(Node* statement, const DdlRecord* record) {
  if (IsA(statement, GrantStmt) && reinterpret_cast<GrantStmt*>(statement)->objtype == OBJECT_DATABASE) {
    auto* grant = reinterpret_cast<GrantStmt*>(statement);
    List* found = NIL;
    ListCell* cell;
    foreach (cell, grant->objects)
      if (OidIsValid(get_database_oid(strVal(lfirst(cell)), true))) found = lappend(found, lfirst(cell));
    grant->objects = found;
    return found != NIL;
  }
  if (record->to_database == DdlDatabase::kNothing || record->to_database == DdlDatabase::kMakes) return true;
  return OidIsValid(get_database_oid(record->database, true));
}

void check_coordinator_knows(const DdlRecord* record) {
  if (record->to_database != DdlDatabase::kDrops || !is_there_with_extension(record->database)) return;
  ereport(ERROR,
          (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
           errmsg("database \"%s\" has the extension gcl here, and not where it is to be dropped", record->database),
           errhint("DROP DATABASE here.")));
}

bool concerns_this_connection(const DdlRecord* record) {
  switch (record->to_database) {
    case DdlDatabase::kRenames:
    case DdlDatabase::kDrops:
    case DdlDatabase::kDropsShared:
      return get_database_oid(record->database, true) == MyDatabaseId;
    default:
      return false;
  }
}

void end_idle_workers(const char* database) {
  DdlNodeState& state = ddl_node_state();
  LWLockAcquire(state.lock, LW_SHARED);
  for (const DdlWorker& worker : state.workers) {
    const char* where = worker.home[0] != '\0' ? worker.home : worker.database;
    if (worker.pid != 0 && worker.pid != MyProcPid && !worker.engaged && strcmp(where, database) == 0)
      kill(worker.pid, SIGTERM);
  }
  LWLockRelease(state.lock);
}

}  // namespace gcl

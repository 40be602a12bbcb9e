#include "extension/pg/ddl/node/kept_out.hpp"

#include "extension/pg/ddl/node/ddl_node_state.hpp"

extern "C" {
#include "commands/dbcommands.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "storage/lwlock.h"
}

namespace gcl {
namespace {

KeptOut* place_of(const char* database) {
  for (KeptOut& out : ddl_node_state().kept_out)
    if (OidIsValid(out.oid) && strcmp(out.database, database) == 0) return &out;
  return nullptr;
}

KeptOut* free_place() {
  for (KeptOut& out : ddl_node_state().kept_out)
    if (!OidIsValid(out.oid)) return &out;
  return nullptr;
}

}  // namespace

bool keep_out(Oid oid, const char* database, const char* reason) {
  KeptOut* out = place_of(database);
  const bool is_new = out == nullptr;
  if (is_new) out = free_place();
  if (out == nullptr) return false;
  LWLockAcquire(ddl_node_state().lock, LW_EXCLUSIVE);
  strlcpy(out->database, database, NAMEDATALEN);
  strlcpy(out->reason, reason, sizeof out->reason);
  out->reason[pg_mbcliplen(reason, int(strlen(reason)), int(sizeof out->reason) - 1)] = '\0';
  if (is_new) out->served = ddl_node_state().member;
  out->caught_up = false;
  out->oid = oid;
  LWLockRelease(ddl_node_state().lock);
  return true;
}

void note_caught_up(const char* database) {
  if (KeptOut* out = place_of(database)) out->caught_up = true;
}

void let_in(const char* database) {
  if (KeptOut* out = place_of(database)) out->oid = InvalidOid;
}

void let_in_caught_up() {
  for (KeptOut& out : ddl_node_state().kept_out)
    if (OidIsValid(out.oid) && out.caught_up) out.oid = InvalidOid;
}

const KeptOut* kept_out(const char* database) {
  const KeptOut* out = place_of(database);
  return out && !out->caught_up ? out : nullptr;
}

bool is_caught_up(const char* database) {
  const KeptOut* out = place_of(database);
  return out && out->caught_up;
}

bool any_caught_up() noexcept {
  for (const KeptOut& out : ddl_node_state().kept_out)
    if (OidIsValid(out.oid) && out.caught_up) return true;
  return false;
}

bool any_kept_out() noexcept {
  for (const KeptOut& out : ddl_node_state().kept_out)
    if (OidIsValid(out.oid)) return true;
  return false;
}

bool is_kept_out(Oid oid) noexcept {
  for (const KeptOut& out : ddl_node_state().kept_out)
    if (OidIsValid(oid) && out.oid == oid) return true;
  return false;
}

void require_let_in() {
  char reason[sizeof(KeptOut::reason)];
  bool found = false;
  LWLockAcquire(ddl_node_state().lock, LW_SHARED);
  for (const KeptOut& out : ddl_node_state().kept_out) {
    if (out.oid != MyDatabaseId) continue;
    found = true;
    strlcpy(reason, out.reason, sizeof reason);
  }
  LWLockRelease(ddl_node_state().lock);
  if (!found) return;
  ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                  errmsg("this database has not caught up on this primary with the DDL of the others"),
                  errdetail("The last attempt failed: %s", reason),
                  errhint("It is tried again every few seconds; what is local here may stand in the way.")));
}

}  // namespace gcl

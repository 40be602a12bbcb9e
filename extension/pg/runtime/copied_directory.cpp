#include "extension/pg/runtime/copied_directory.hpp"

#include <unistd.h>

#include "extension/pg/boundary/pg.hpp"
#include "extension/pg/runtime/settings.hpp"

namespace gcl {

namespace {

bool has_file(const char* name) { return access(name, F_OK) == 0; }

bool is_standby() { return has_file("standby.signal") || has_file("recovery.signal"); }
bool is_base_backup() { return has_file("backup_label") && !has_file("gcl_ddl/restored"); }

}  // namespace

bool is_copied_directory() { return is_standby() || is_base_backup(); }

void require_own_directory() {
  if (is_standby())
    ereport(
        FATAL, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
        errmsg("a server in archive recovery, or a standby, does not join the gcl pool"),
        errdetail("It follows the WAL of one primary, and gcl tables are in that of all."),
        errhint("With gcl.pool = '' it has the ordinary tables of primary %d. gclctl backup and gclctl restore make "
                "another cluster out of one.",
                settings.node_id));
  if (is_base_backup())
    ereport(FATAL, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
            errmsg("a base backup of a primary does not join the gcl pool"),
            errdetail("It is older than the pool, and than what the other primaries have seen of primary %d.",
                      settings.node_id),
            errhint("With gcl.pool = '' it has that primary's ordinary tables. gclctl backup and gclctl restore make "
                    "another cluster out of one; gclctl add-primary makes a primary anew."));
}

}  // namespace gcl

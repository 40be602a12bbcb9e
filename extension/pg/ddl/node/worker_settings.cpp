#include "extension/pg/ddl/node/worker_settings.hpp"

extern "C" {
#include "catalog/pg_authid.h"
#include "miscadmin.h"
#include "utils/guc.h"
}

namespace gcl {
namespace {

// PGC_S_OVERRIDE comes before what configuration files, databases and roles say, now and after a reload; a
// record's settings come before it.
constexpr const char* kOfWorkers[][2] = {
    // A replay reads and writes, waits as long as its coordinator does, and is not the primary's own session.
    {"session_replication_role", "replica"},
    // After a crash the log still has the statement (ddl.position-with-catalogs).
    {"synchronous_commit", "off"},
    {"default_transaction_read_only", "off"},
    {"default_transaction_isolation", "read committed"},
    {"default_transaction_deferrable", "off"},
    {"statement_timeout", "0"},
    {"lock_timeout", "0"},
    {"idle_in_transaction_session_timeout", "0"},
    {"idle_session_timeout", "0"},
    {"exit_on_error", "off"},
    {"role", "none"},
    // The coordinator was allowed to run the statement.
    {"row_security", "on"},
    {"restrict_nonsystem_relation_kind", ""},
    // A record leaves out what its coordinator's session has not loaded.
    {"plpgsql.check_asserts", "on"},
    {"plpgsql.extra_errors", "none"},
    {"plpgsql.extra_warnings", "none"},
    {"plpgsql.print_strict_params", "off"},
    {"plpgsql.variable_conflict", "error"}};

}  // namespace

void take_worker_settings() {
  SetSessionAuthorization(BOOTSTRAP_SUPERUSERID, true);
  for (const auto& [name, value] : kOfWorkers) SetConfigOption(name, value, PGC_SUSET, PGC_S_OVERRIDE);
}

void forget_session_settings() { ResetAllOptions(); }

void be_impatient() { SetConfigOption("lock_timeout", "1500ms", PGC_SUSET, PGC_S_OVERRIDE); }

}  // namespace gcl

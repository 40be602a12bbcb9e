// What the launcher and the apply workers run under, whatever is configured for the server, a database or a role.
#pragma once

#include "extension/pg/ddl/base/pg.hpp"

namespace gcl {

// Called once, when the process has its connection.  What a statement's meaning depends on comes with its record
// (record_settings); where it does not, the server's own default holds.
void take_worker_settings();
// Between transactions.  What the last one has set for the session is as it was taken (ddl.replay-ignores-settings).
void forget_session_settings();
// A worker that catches up runs under the DDL lock of the cluster: it does not wait long for what a local session has
// locked.
void be_impatient();

}  // namespace gcl

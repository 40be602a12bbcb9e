// The module: what is set up when the server preloads gcl, and what it says when it was not preloaded.
#include "extension/pg/ddl/ddl.hpp"
#include "extension/pg/ddl/node/data_life.hpp"
#include "extension/pg/default_method.hpp"
#include "extension/pg/indexam/dispatch.hpp"
#include "extension/pg/indexam/index_pages.hpp"
#include "extension/pg/runtime/backend.hpp"
#include "extension/pg/runtime/copied_directory.hpp"
#include "extension/pg/runtime/node.hpp"
#include "extension/pg/runtime/own_wait.hpp"
#include "extension/pg/runtime/serializable.hpp"
#include "extension/pg/runtime/settings.hpp"
#include "extension/pg/sequence/identity_columns.hpp"
#include "extension/pg/sequence/sequence_file.hpp"
#include "extension/pg/sequence/sequence_functions.hpp"
#include "extension/pg/stats/relation_size.hpp"
#include "extension/pg/stats/sampler.hpp"
#include "extension/pg/tableam/drop_hook.hpp"
#include "extension/pg/tableam/table_am.hpp"
#include "extension/pg/txn/exported_snapshots.hpp"
#include "extension/pg/txn/snapshots.hpp"
#include "extension/pg/txn/xact.hpp"
#include "extension/pg/workers/workers.hpp"

extern "C" {
#include "miscadmin.h"

PG_MODULE_MAGIC;
PGDLLEXPORT void _PG_init(void);
}

void _PG_init(void) {
  gcl::gcl_table_routine = gcl::table_am();
  if (!process_shared_preload_libraries_in_progress) return;  // every use says so: table_am.cpp, backend.cpp
  gcl::define_settings();
  gcl::accept_default_method();
  gcl::install_btree_dispatch(gcl::table_am());
  gcl::replace_size_functions();
  gcl::replace_sequence_functions();
  gcl::register_wal_records();
  const bool joins = gcl::node_configured() && IsPostmasterEnvironment;
  if (!joins && gcl::is_copied_directory()) gcl::end_life_of_old_copy();
  if (gcl::node_configured()) {
    gcl::install_node();
    gcl::install_transaction_callbacks();
    gcl::install_serializable();
    gcl::install_index_sizes();
    gcl::install_query_intents();
    gcl::install_sequence_refresh();
    gcl::install_snapshot_hooks();
    gcl::replace_snapshot_export();
    gcl::install_identity_column_hook();
    gcl::install_drop_hook();
    gcl::install_ddl_hooks();
    gcl::install_deadlock_details();
    gcl::register_workers({gcl::begin_sampling, gcl::sample_when_due, gcl::end_sampling});
  }
  gcl::preloaded = true;
}

#include "extension/pg/tableam/table_am.hpp"

extern "C" {
PG_FUNCTION_INFO_V1(gcl_tableam_handler);
}

namespace gcl {

bool preloaded = false;

namespace {

const TupleTableSlotOps* slot_callbacks(Relation) { return &TTSOpsHeapTuple; }

const TableAmRoutine routine{
    .type = T_TableAmRoutine,
    .slot_callbacks = slot_callbacks,
    .scan_begin = gcl_scan_begin,
    .scan_end = gcl_scan_end,
    .scan_rescan = gcl_scan_rescan,
    .scan_getnextslot = gcl_scan_getnextslot,
    .scan_set_tidrange = nullptr,
    .scan_getnextslot_tidrange = nullptr,
    .parallelscan_estimate = table_block_parallelscan_estimate,
    .parallelscan_initialize = table_block_parallelscan_initialize,
    .parallelscan_reinitialize = table_block_parallelscan_reinitialize,
    .index_fetch_begin = gcl_index_fetch_begin,
    .index_fetch_reset = gcl_index_fetch_reset,
    .index_fetch_end = gcl_index_fetch_end,
    .index_fetch_tuple = gcl_index_fetch_tuple,
    .tuple_fetch_row_version = gcl_tuple_fetch_row_version,
    .tuple_tid_valid = gcl_tuple_tid_valid,
    .tuple_get_latest_tid = gcl_tuple_get_latest_tid,
    .tuple_satisfies_snapshot = gcl_tuple_satisfies_snapshot,
    .index_delete_tuples = gcl_index_delete_tuples,
    .tuple_insert = gcl_tuple_insert,
    .tuple_insert_speculative = gcl_tuple_insert_speculative,
    .tuple_complete_speculative = gcl_tuple_complete_speculative,
    .multi_insert = gcl_multi_insert,
    .tuple_delete = gcl_tuple_delete,
    .tuple_update = gcl_tuple_update,
    .tuple_lock = gcl_tuple_lock,
    .finish_bulk_insert = nullptr,
    .relation_set_new_filenode = gcl_relation_set_new_filenode,
    .relation_nontransactional_truncate = gcl_relation_nontransactional_truncate,
    .relation_copy_data = gcl_relation_copy_data,
    .relation_copy_for_cluster = gcl_relation_copy_for_cluster,
    .relation_vacuum = gcl_relation_vacuum,
    .scan_analyze_next_block = gcl_scan_analyze_next_block,
    .scan_analyze_next_tuple = gcl_scan_analyze_next_tuple,
    .index_build_range_scan = gcl_index_build_range_scan,
    .index_validate_scan = gcl_index_validate_scan,
    .relation_size = gcl_relation_size,
    .relation_needs_toast_table = gcl_relation_needs_toast_table,
    .relation_toast_am = gcl_relation_toast_am,
    .relation_fetch_toast_slice = gcl_relation_fetch_toast_slice,
    .relation_estimate_size = gcl_relation_estimate_size,
    .scan_bitmap_next_block = gcl_scan_bitmap_next_block,
    .scan_bitmap_next_tuple = gcl_scan_bitmap_next_tuple,
    .scan_sample_next_block = gcl_scan_sample_next_block,
    .scan_sample_next_tuple = gcl_scan_sample_next_tuple,
};

}  // namespace

const TableAmRoutine* table_am() { return &routine; }

void not_supported(const char* what, const char* hint) {
  ereport(ERROR, errcode(ERRCODE_FEATURE_NOT_SUPPORTED), errmsg("gcl tables do not support %s yet", what),
          hint != nullptr ? errhint("%s", hint) : 0);
  pg_unreachable();
}

}  // namespace gcl

// Works without preload too, so that tables can be opened, described and dropped; data access says what is missing.
Datum gcl_tableam_handler(PG_FUNCTION_ARGS) { PG_RETURN_POINTER(gcl::table_am()); }

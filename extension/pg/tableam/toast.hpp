// Large values: compressed in the row, or stored out of line in the table's TOAST relation, which is a gcl table too,
// its index a B-link tree.  So pages, transactions, VACUUM and DDL are those of all rows; what is here is what
// PostgreSQL does by calling heapam (toast_save_datum() and toast_delete_datum() insert and delete rows of a heap).
//
// tableam.toast-limits-of-heap: PostgreSQL's functions (access/toast_helper.h) decide, with heap's limits, which values
//     are compressed and which move out: a value has the size that it has in a heap table.
// tableam.chunks-follow-row: The transaction that inserts or deletes the row does the same to its chunks; they are
//     never updated.  A snapshot that sees the row may read them: SnapshotToast asks only whether they were rolled
//     back.  They are removed by the horizon that the row is removed by.
// tableam.value-id-unused: No chunk of the TOAST relation, dead or not, has the id of a new value: old snapshots may
//     read dead chunks.
// tableam.lost-chunks-abandoned: Chunks of a row that is not written after all (a lost update, a lost speculative
//     insertion) are abandoned at once: the end of the transaction would commit them.
#pragma once

#include "extension/pg/boundary/pg.hpp"

namespace gcl {

// Of one row, while it is written.  Lists of toast pointers (varlena*), in the memory context of the caller.
struct OutOfLine {
  List* stored;    // new values
  List* replaced;  // values of the old row that the new one does not refer to
};

// `row` as it is to be stored: itself, or a new tuple that fits if it can.  `old`: the version that it replaces, or
// null.
HeapTuple toast_row(Relation rel, HeapTuple row, HeapTuple old, CommandId command, OutOfLine* change);
// Whether toast_row() has anything to do.
bool needs_toasting(HeapTuple row, HeapTuple old);
// The values out of line that a row refers to.
List* values_out_of_line(Relation rel, HeapTuple row);

// --- chunks (toast_chunks.cpp) ---------------------------------------------------------------------------------------
// Stores a value that is in memory; returns the pointer to it.
varlena* store_out_of_line(Oid toast, Datum value, CommandId command);
enum class Removal : uint8_t {
  kDelete,  // with the row: others may see it as long as they see the row
  kAbandon  // (tableam.lost-chunks-abandoned)
};
void remove_out_of_line(const List* values, CommandId command, Removal how);

// Callbacks of the table access method.
bool gcl_relation_needs_toast_table(Relation);
Oid gcl_relation_toast_am(Relation);
void gcl_relation_fetch_toast_slice(Relation, Oid, int32, int32, int32, struct varlena*);

}  // namespace gcl

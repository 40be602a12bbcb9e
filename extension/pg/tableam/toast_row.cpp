// Which values of a row are compressed, and which are stored out of line (tableam.toast-limits-of-heap).
#include "extension/pg/runtime/relation_record.hpp"
#include "extension/pg/tableam/table_am.hpp"
#include "extension/pg/tableam/toast.hpp"

extern "C" {
#include "access/detoast.h"
#include "access/heaptoast.h"
#include "access/toast_helper.h"
#include "access/toast_internals.h"
}

namespace gcl {

namespace {

varlena* as_varlena(Datum value) { return reinterpret_cast<varlena*>(DatumGetPointer(value)); }

// A row's values on their way to fitting.
struct Fitting {
  ToastTupleContext context;
  TupleDesc desc;
  Oid toast;  // none: values can be compressed, but not moved
  CommandId command;
  MemoryContext lasting;  // of what is stored
  List* stored;

  bool exceeds(Size bytes) const {
    return heap_compute_data_size(desc, context.ttc_values, context.ttc_isnull) > bytes;
  }

  void compress(int i) {
    if (TupleDescAttr(desc, i)->attstorage == TYPSTORAGE_EXTERNAL)
      context.ttc_attr[i].tai_colflags |= TOASTCOL_INCOMPRESSIBLE;
    else
      toast_tuple_try_compression(&context, i);
  }

  void move_out(int i) {
    MemoryContext work = MemoryContextSwitchTo(lasting);
    varlena* pointer = store_out_of_line(toast, context.ttc_values[i], command);
    stored = lappend(stored, pointer);
    MemoryContextSwitchTo(work);
    context.ttc_values[i] = PointerGetDatum(pointer);
    context.ttc_attr[i].tai_colflags |= TOASTCOL_IGNORE;
    context.ttc_flags |= TOAST_NEEDS_CHANGE;
  }

  // Compresses the widest value, again and again, until the row's data has at most `target` bytes.  `main`: those of
  // columns with STORAGE MAIN; else the other ones, of which one that is too large alone does not wait for its turn to
  // move.
  void compress_all(bool main, Size target) {
    while (exceeds(target)) {
      const int i = toast_tuple_find_biggest_attribute(&context, true, main);
      if (i < 0) return;
      compress(i);
      if (!main && Size(context.ttc_attr[i].tai_size) > target && OidIsValid(toast)) move_out(i);
    }
  }

  void move_all(bool main, Size target) {
    while (OidIsValid(toast) && exceeds(target)) {
      const int i = toast_tuple_find_biggest_attribute(&context, false, main);
      if (i < 0) return;
      move_out(i);
    }
  }
};

struct Deformed {
  Datum* values;
  bool* nulls;
};

Deformed deform(TupleDesc desc, HeapTuple row) {
  const Deformed to{static_cast<Datum*>(palloc(sizeof(Datum) * desc->natts)),
                    static_cast<bool*>(palloc(sizeof(bool) * desc->natts))};
  heap_deform_tuple(row, desc, to.values, to.nulls);
  return to;
}

varlena* copy_of_pointer(const varlena* pointer) {
  const Size bytes = VARSIZE_EXTERNAL(pointer);
  return static_cast<varlena*>(memcpy(palloc(bytes), pointer, bytes));
}

List* replaced_values(const Fitting& fitting) {
  List* replaced = NIL;
  if (!(fitting.context.ttc_flags & TOAST_NEEDS_DELETE_OLD)) return NIL;
  for (int i = 0; i < fitting.desc->natts; ++i)
    if (fitting.context.ttc_attr[i].tai_colflags & TOASTCOL_NEEDS_DELETE_OLD)
      replaced = lappend(replaced, copy_of_pointer(as_varlena(fitting.context.ttc_oldvalues[i])));
  return replaced;
}

}  // namespace

bool needs_toasting(HeapTuple row, HeapTuple old) {
  return HeapTupleHasExternal(row) || row->t_len > TOAST_TUPLE_THRESHOLD ||
         (old != nullptr && HeapTupleHasExternal(old));
}

HeapTuple toast_row(Relation rel, HeapTuple row, HeapTuple old, CommandId command, OutOfLine* change) {
  MemoryContext work = AllocSetContextCreate(CurrentMemoryContext, "gcl large values", ALLOCSET_DEFAULT_SIZES);
  MemoryContext caller = MemoryContextSwitchTo(work);
  TupleDesc desc = RelationGetDescr(rel);
  const Deformed now = deform(desc, row);
  const Deformed before = old != nullptr ? deform(desc, old) : Deformed{};
  Fitting fitting{.context = {},
                  .desc = desc,
                  .toast = rel->rd_rel->reltoastrelid,
                  .command = command,
                  .lasting = caller,
                  .stored = NIL};
  fitting.context.ttc_rel = rel;
  fitting.context.ttc_values = now.values;
  fitting.context.ttc_isnull = now.nulls;
  fitting.context.ttc_oldvalues = before.values;
  fitting.context.ttc_oldisnull = before.nulls;
  fitting.context.ttc_attr = static_cast<ToastAttrInfo*>(palloc(sizeof(ToastAttrInfo) * desc->natts));
  toast_tuple_init(&fitting.context);

  const bool has_nulls = fitting.context.ttc_flags & TOAST_HAS_NULLS;
  const Size header = MAXALIGN(SizeofHeapTupleHeader + (has_nulls ? BITMAPLEN(desc->natts) : 0));
  const Size target = Size(RelationGetToastTupleTarget(rel, TOAST_TUPLE_TARGET)) - header;
  fitting.compress_all(false, target);
  fitting.move_all(false, target);
  fitting.compress_all(true, target);
  fitting.move_all(true, kTupleBytesMax - header);

  MemoryContextSwitchTo(caller);
  change->stored = fitting.stored;
  change->replaced = replaced_values(fitting);
  if (fitting.context.ttc_flags & TOAST_NEEDS_CHANGE) row = heap_form_tuple(desc, now.values, now.nulls);
  MemoryContextDelete(work);
  return row;
}

List* values_out_of_line(Relation rel, HeapTuple row) {
  if (!HeapTupleHasExternal(row)) return NIL;
  TupleDesc desc = RelationGetDescr(rel);
  const Deformed is = deform(desc, row);
  List* found = NIL;
  for (int i = 0; i < desc->natts; ++i) {
    if (is.nulls[i] || TupleDescAttr(desc, i)->attlen != -1) continue;
    varlena* value = as_varlena(is.values[i]);
    if (VARATT_IS_EXTERNAL_ONDISK(value)) found = lappend(found, copy_of_pointer(value));
  }
  pfree(is.values);
  pfree(is.nulls);
  return found;
}

// The widths that decide are those of PostgreSQL's tuples, which are ours (tableam.toast-limits-of-heap).
bool gcl_relation_needs_toast_table(Relation rel) {
  bool needed;
  if (relation_seam.toast_override && relation_seam.toast_override(RelationGetRelid(rel), &needed)) return needed;
  return GetHeapamTableAmRoutine()->relation_needs_toast_table(rel);
}

Oid gcl_relation_toast_am(Relation rel) { return rel->rd_rel->relam; }

}  // namespace gcl

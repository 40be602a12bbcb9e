#include "extension/pg/ddl/record/ddl_record.hpp"

extern "C" {
#include "access/htup_details.h"
#include "libpq/pqformat.h"
}

namespace gcl {
namespace {

constexpr uint32_t kRecordMagic = 0x44444c41;  // "DDLA", whose last character is the version

// It belongs to the pool's format (docs/UPGRADING.md): there is no reader of another version.
void require_version(uint32_t magic) {
  if (magic == kRecordMagic) return;
  if (magic >> 8 != kRecordMagic >> 8) elog(ERROR, "gcl: malformed DDL record");
  ereport(ERROR, (errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
                  errmsg("the log of DDL has a record of version \"%c\", and version \"%c\" is read here", char(magic),
                         char(kRecordMagic)),
                  errhint("Another version of gcl wrote it: use that one.")));
}

template <class T>
T* make() {
  return static_cast<T*>(palloc0(sizeof(T)));
}

void write_text(StringInfo to, const char* text) {
  const uint32_t bytes = text ? uint32_t(strlen(text)) : 0;
  pq_sendint32(to, bytes);
  if (bytes) appendBinaryStringInfo(to, text, int(bytes));
}

char* read_text(StringInfo from) {
  const int bytes = int(pq_getmsgint(from, 4));
  const char* at = pq_getmsgbytes(from, bytes);
  return pnstrdup(at, bytes);
}

void write_texts(StringInfo to, const List* texts) {
  pq_sendint32(to, uint32_t(list_length(texts)));
  ListCell* cell;
  foreach (cell, texts) write_text(to, static_cast<const char*>(lfirst(cell)));
}

List* read_texts(StringInfo from) {
  List* texts = NIL;
  for (unsigned n = pq_getmsgint(from, 4); n > 0; --n) texts = lappend(texts, read_text(from));
  return texts;
}

void write_objects(StringInfo to, const List* objects) {
  pq_sendint32(to, uint32_t(list_length(objects)));
  ListCell* cell;
  foreach (cell, objects) {
    const auto* object = static_cast<DdlObject*>(lfirst(cell));
    pq_sendint32(to, object->catalog);
    pq_sendint32(to, object->oid);
  }
}

List* read_objects(StringInfo from) {
  List* objects = NIL;
  for (unsigned n = pq_getmsgint(from, 4); n > 0; --n) {
    auto* object = make<DdlObject>();
    object->catalog = pq_getmsgint(from, 4);
    object->oid = pq_getmsgint(from, 4);
    objects = lappend(objects, object);
  }
  return objects;
}

void write_made(StringInfo to, const List* all) {
  pq_sendint32(to, uint32_t(list_length(all)));
  ListCell* cell;
  foreach (cell, all) {
    const auto* made = static_cast<DdlMade*>(lfirst(cell));
    pq_sendint32(to, made->object.catalog);
    pq_sendint32(to, made->object.oid);
    pq_sendbyte(to, made->kind);
    pq_sendbyte(to, made->transient);
    pq_sendint32(to, uint32_t(made->columns));
    pq_sendint32(to, made->toasted);
  }
}

List* read_made(StringInfo from) {
  List* all = NIL;
  for (unsigned n = pq_getmsgint(from, 4); n > 0; --n) {
    auto* made = make<DdlMade>();
    made->object.catalog = pq_getmsgint(from, 4);
    made->object.oid = pq_getmsgint(from, 4);
    const int kind = pq_getmsgbyte(from);
    if (kind > kMadeOther) elog(ERROR, "gcl: malformed DDL record");
    made->kind = DdlMadeKind(kind);
    made->transient = pq_getmsgbyte(from) != 0;
    made->columns = int(pq_getmsgint(from, 4));
    made->toasted = pq_getmsgint(from, 4);
    all = lappend(all, made);
  }
  return all;
}

void write_labels(StringInfo to, const List* labels) {
  pq_sendint32(to, uint32_t(list_length(labels)));
  ListCell* cell;
  foreach (cell, labels) {
    const auto* label = static_cast<DdlLabel*>(lfirst(cell));
    pq_sendint32(to, label->type);
    pq_sendint32(to, label->oid);
    pq_sendfloat4(to, label->order);
    write_text(to, label->name);
  }
}

List* read_labels(StringInfo from) {
  List* labels = NIL;
  for (unsigned n = pq_getmsgint(from, 4); n > 0; --n) {
    auto* label = make<DdlLabel>();
    label->type = pq_getmsgint(from, 4);
    label->oid = pq_getmsgint(from, 4);
    label->order = pq_getmsgfloat4(from);
    label->name = read_text(from);
    labels = lappend(labels, label);
  }
  return labels;
}

void write_relation_state(StringInfo to, const DdlRelationState* state) {
  pq_sendint32(to, state->relation);
  pq_sendint64(to, state->header);
  pq_sendint32(to, uint32_t(state->pages));
  pq_sendfloat4(to, state->tuples);
  pq_sendbyte(to, state->checks_xmin);
  pq_sendint32(to, uint32_t(state->natts));
  for (int i = 0; i < state->natts; ++i) {
    pq_sendint64(to, state->versions[i]);
    pq_sendbyte(to, state->missing[i] != nullptr);
    if (state->missing[i]) write_text(to, state->missing[i]);
  }
}

DdlRelationState* read_relation_state(StringInfo from) {
  const Oid relation = pq_getmsgint(from, 4);
  const uint64_t header = uint64_t(pq_getmsgint64(from));
  const auto pages = int32_t(pq_getmsgint(from, 4));
  const float4 tuples = pq_getmsgfloat4(from);
  const bool checks_xmin = pq_getmsgbyte(from) != 0;
  const int natts = int(pq_getmsgint(from, 4));
  DdlRelationState* state = new_relation_state(relation, natts);
  state->header = header;
  state->pages = pages;
  state->tuples = tuples;
  state->checks_xmin = checks_xmin;
  for (int i = 0; i < natts; ++i) {
    state->versions[i] = uint64_t(pq_getmsgint64(from));
    if (pq_getmsgbyte(from)) state->missing[i] = read_text(from);
  }
  return state;
}

}  // namespace

DdlRelationState* new_relation_state(Oid relation, int natts) {
  if (natts < 0 || natts > MaxTupleAttributeNumber) elog(ERROR, "gcl: malformed DDL record");
  auto* state = make<DdlRelationState>();
  state->relation = relation;
  state->header = ~uint64_t{0};
  state->natts = natts;
  state->versions = static_cast<uint64_t*>(palloc0(sizeof(uint64_t) * (size_t(natts) + 1)));
  state->missing = static_cast<char**>(palloc0(sizeof(char*) * (size_t(natts) + 1)));
  return state;
}

void write_ints(StringInfo to, const List* ints) {
  pq_sendint32(to, uint32_t(list_length(ints)));
  ListCell* cell;
  foreach (cell, ints) pq_sendint32(to, uint32_t(lfirst_int(cell)));
}

List* read_ints(StringInfo from) {
  List* ints = NIL;
  for (unsigned n = pq_getmsgint(from, 4); n > 0; --n) ints = lappend_int(ints, int(pq_getmsgint(from, 4)));
  return ints;
}

void write_record(StringInfo to, const DdlRecord* record) {
  ListCell* cell;
  pq_sendint32(to, kRecordMagic);
  write_text(to, record->sql);
  write_text(to, record->verifier);
  write_text(to, record->role);
  write_text(to, record->session_role);
  pq_sendint32(to, uint32_t(list_length(record->settings)));
  foreach (cell, record->settings) {
    const auto* setting = static_cast<DdlSetting*>(lfirst(cell));
    write_text(to, setting->name);
    write_text(to, setting->value);
  }
  pq_sendint32(to, uint32_t(list_length(record->targets)));
  foreach (cell, record->targets) {
    const auto* target = static_cast<DdlTarget*>(lfirst(cell));
    pq_sendint32(to, target->relation);
    pq_sendint32(to, uint32_t(target->mode));
  }
  write_ints(to, record->path);
  write_made(to, record->made);
  write_objects(to, record->altered);
  pq_sendint32(to, uint32_t(list_length(record->pages)));
  foreach (cell, record->pages) {
    const auto* pages = static_cast<DdlPages*>(lfirst(cell));
    pq_sendint32(to, pages->relation);
    pq_sendint64(to, pages->page);
  }
  pq_sendint32(to, uint32_t(list_length(record->relation_states)));
  foreach (cell, record->relation_states) write_relation_state(to, static_cast<DdlRelationState*>(lfirst(cell)));
  write_labels(to, record->labels);
  pq_sendint32(to, uint32_t(list_length(record->sequences)));
  foreach (cell, record->sequences) {
    const auto* sequence = static_cast<DdlSequence*>(lfirst(cell));
    pq_sendint32(to, sequence->relation);
    pq_sendint64(to, uint64_t(sequence->last));
    pq_sendbyte(to, sequence->called);
  }
  write_texts(to, record->bounds);
  write_ints(to, record->added);
  pq_sendbyte(to, record->shared);
  pq_sendbyte(to, record->owned);
  pq_sendbyte(to, uint8(record->to_database));
  write_text(to, record->database);
  write_text(to, record->outcome);
}

DdlRecord* read_record(StringInfo from) {
  require_version(pq_getmsgint(from, 4));
  auto* record = make<DdlRecord>();
  record->sql = read_text(from);
  record->verifier = read_text(from);
  record->role = read_text(from);
  record->session_role = read_text(from);
  for (unsigned n = pq_getmsgint(from, 4); n > 0; --n) {
    auto* setting = make<DdlSetting>();
    setting->name = read_text(from);
    setting->value = read_text(from);
    record->settings = lappend(record->settings, setting);
  }
  for (unsigned n = pq_getmsgint(from, 4); n > 0; --n) {
    auto* target = make<DdlTarget>();
    target->relation = pq_getmsgint(from, 4);
    target->mode = int(pq_getmsgint(from, 4));
    record->targets = lappend(record->targets, target);
  }
  record->path = read_ints(from);
  record->made = read_made(from);
  record->altered = read_objects(from);
  for (unsigned n = pq_getmsgint(from, 4); n > 0; --n) {
    auto* pages = make<DdlPages>();
    pages->relation = pq_getmsgint(from, 4);
    pages->page = uint64_t(pq_getmsgint64(from));
    record->pages = lappend(record->pages, pages);
  }
  for (unsigned n = pq_getmsgint(from, 4); n > 0; --n)
    record->relation_states = lappend(record->relation_states, read_relation_state(from));
  record->labels = read_labels(from);
  for (unsigned n = pq_getmsgint(from, 4); n > 0; --n) {
    auto* sequence = make<DdlSequence>();
    sequence->relation = pq_getmsgint(from, 4);
    sequence->last = pq_getmsgint64(from);
    sequence->called = pq_getmsgbyte(from) != 0;
    record->sequences = lappend(record->sequences, sequence);
  }
  record->bounds = read_texts(from);
  record->added = read_ints(from);
  record->shared = pq_getmsgbyte(from) != 0;
  record->owned = pq_getmsgbyte(from) != 0;
  record->to_database = DdlDatabase(pq_getmsgbyte(from));
  record->database = read_text(from);
  record->outcome = read_text(from);
  return record;
}

}  // namespace gcl

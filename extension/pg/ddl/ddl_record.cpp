#include "extension/pg/ddl/ddl_record.hpp"

extern "C" {
#include "libpq/pqformat.h"
}

namespace gcl {
namespace {

constexpr uint32_t kRecordMagic = 0x44444c32;  // "DDL2"

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

void write_oids(StringInfo to, const List* oids) {
  pq_sendint32(to, uint32_t(list_length(oids)));
  ListCell* cell;
  foreach (cell, oids) pq_sendint32(to, lfirst_oid(cell));
}

List* read_oids(StringInfo from) {
  List* oids = NIL;
  for (unsigned n = pq_getmsgint(from, 4); n > 0; --n) oids = lappend_oid(oids, pq_getmsgint(from, 4));
  return oids;
}

void write_shape(StringInfo to, const DdlShape* shape) {
  pq_sendint32(to, shape->relation);
  pq_sendint32(to, uint32_t(shape->pages));
  pq_sendfloat4(to, shape->tuples);
  pq_sendbyte(to, shape->checks_xmin);
  pq_sendint32(to, uint32_t(shape->natts));
  for (int i = 0; i < shape->natts; ++i) pq_sendint64(to, shape->versions[i]);
}

DdlShape* read_shape(StringInfo from) {
  auto* shape = make<DdlShape>();
  shape->relation = pq_getmsgint(from, 4);
  shape->pages = int32_t(pq_getmsgint(from, 4));
  shape->tuples = pq_getmsgfloat4(from);
  shape->checks_xmin = pq_getmsgbyte(from) != 0;
  shape->natts = int(pq_getmsgint(from, 4));
  if (shape->natts < 0 || shape->natts > 1700) elog(ERROR, "gcl: malformed DDL record");
  shape->versions = static_cast<uint64_t*>(palloc0(sizeof(uint64_t) * (size_t(shape->natts) + 1)));
  for (int i = 0; i < shape->natts; ++i) shape->versions[i] = uint64_t(pq_getmsgint64(from));
  return shape;
}

}  // namespace

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
  write_text(to, record->role);
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
  write_oids(to, record->heaps);
  write_oids(to, record->indexes);
  write_oids(to, record->types);
  write_oids(to, record->array_types);
  pq_sendint32(to, uint32_t(list_length(record->pages)));
  foreach (cell, record->pages) {
    const auto* pages = static_cast<DdlPages*>(lfirst(cell));
    pq_sendint32(to, pages->relation);
    pq_sendint64(to, pages->page);
  }
  pq_sendint32(to, uint32_t(list_length(record->shapes)));
  foreach (cell, record->shapes) write_shape(to, static_cast<DdlShape*>(lfirst(cell)));
  pq_sendint32(to, uint32_t(list_length(record->constraints)));
  foreach (cell, record->constraints) {
    const auto* constraint = static_cast<DdlConstraint*>(lfirst(cell));
    pq_sendint32(to, constraint->relation);
    pq_sendint32(to, constraint->oid);
    write_text(to, constraint->name);
  }
  write_text(to, record->outcome);
}

DdlRecord* read_record(StringInfo from) {
  if (pq_getmsgint(from, 4) != kRecordMagic) elog(ERROR, "gcl: malformed DDL record");
  auto* record = make<DdlRecord>();
  record->sql = read_text(from);
  record->role = read_text(from);
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
  record->heaps = read_oids(from);
  record->indexes = read_oids(from);
  record->types = read_oids(from);
  record->array_types = read_oids(from);
  for (unsigned n = pq_getmsgint(from, 4); n > 0; --n) {
    auto* pages = make<DdlPages>();
    pages->relation = pq_getmsgint(from, 4);
    pages->page = uint64_t(pq_getmsgint64(from));
    record->pages = lappend(record->pages, pages);
  }
  for (unsigned n = pq_getmsgint(from, 4); n > 0; --n) record->shapes = lappend(record->shapes, read_shape(from));
  for (unsigned n = pq_getmsgint(from, 4); n > 0; --n) {
    auto* constraint = make<DdlConstraint>();
    constraint->relation = pq_getmsgint(from, 4);
    constraint->oid = pq_getmsgint(from, 4);
    constraint->name = read_text(from);
    record->constraints = lappend(record->constraints, constraint);
  }
  record->outcome = read_text(from);
  return record;
}

}  // namespace gcl

// DdlRecord: one statement and everything its replay must not decide for itself.  Lives in a memory context; written
// and read as a flat string of bytes (network order, as PostgreSQL's own messages).
#pragma once

#include "extension/pg/ddl/pg.hpp"

namespace gcl {

struct DdlSetting {
  char* name;
  char* value;
};

struct DdlTarget {
  Oid relation;
  LOCKMODE mode;
};

struct DdlPages {  // where the pages of a relation are
  Oid relation;
  uint64_t page;
};

struct DdlConstraint {
  Oid relation;
  Oid oid;
  char* name;
};

struct DdlShape {  // what the statement left of a table or index
  Oid relation;
  int32_t pages;  // pg_class.relpages, reltuples
  float4 tuples;
  bool checks_xmin;    // an index that transactions older than it must not use (pg_index.indcheckxmin)
  int natts;           // 0: an index
  uint64_t* versions;  // of the attributes
};

struct DdlRecord {
  char* sql;
  char* role;
  List* settings;  // DdlSetting*
  List* targets;   // DdlTarget*
  List* path;      // of int: open savepoints of the author, outermost first
  List* heaps;     // OIDs in order of creation
  List* indexes;
  List* types;
  List* array_types;
  List* pages;        // DdlPages*
  List* shapes;       // DdlShape*
  List* constraints;  // DdlConstraint*
  char* outcome;      // digest of what the statement left in the catalogs; "" for none
};

void write_record(StringInfo to, const DdlRecord* record);
DdlRecord* read_record(StringInfo from);  // ERROR if it is not one

void write_ints(StringInfo to, const List* ints);
List* read_ints(StringInfo from);

}  // namespace gcl

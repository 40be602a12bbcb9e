// DdlRecord: one statement and everything its replay must not decide for itself.  Lives in a memory context; written
// and read as a flat string of bytes (network order, as PostgreSQL's own messages).
#pragma once

#include "extension/pg/ddl/base/pg.hpp"

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

// Kinds of OIDs: those that PostgreSQL can be told before it takes one, and all others.
enum DdlMadeKind : uint8_t {
  kMadeRelation,
  kMadeIndex,
  kMadeToast,
  kMadeType,
  kMadeArray,
  kMadeMultirange,
  kMadeMultirangeArray,
  kMadeRole,
  kMadeOther
};

struct DdlObject {
  Oid catalog;
  Oid oid;
};

struct DdlMade {     // an entry of the queue of OIDs (ddl.oids-in-order)
  DdlObject object;  // first, so that a list of these is one of DdlObject* as well
  DdlMadeKind kind;
  bool transient;  // a relation that takes another one's rows, for a while
  int columns;     // of a relation, how many
  Oid toasted;     // of a TOAST relation: the table that it is for
};

struct DdlLabel {  // of an enum
  Oid type;
  Oid oid;
  float4 order;
  char* name;
};

struct DdlRelationState {  // what the statement left of a table, view, composite type or index
  Oid relation;
  uint64_t header;  // its page in the pool; ~0: it has none
  int32_t pages;    // pg_class.relpages, reltuples
  float4 tuples;
  bool checks_xmin;    // an index that transactions older than it must not use (pg_index.indcheckxmin)
  int natts;           // 0: an index
  uint64_t* versions;  // of the attributes
  char** missing;      // of the attributes: what rows older than the column have in it; null: nothing is noted
};

struct DdlSequence {  // what the statement found of a sequence that it changes
  Oid relation;
  int64_t last;
  bool called;
};

// What a statement does to a database as a whole.
enum class DdlDatabase : uint8_t {
  kNothing,
  kAlters,
  kRenames,
  kMakes,
  kDrops,
  kDropsShared,  // one that the extension is in
};

enum AddedDefault {  // what becomes of the default of an added column in the rows that there are
  kNoDefault,
  kOneValue,  // evaluated once, as the column's missing value
  kRewritten  // evaluated for each row
};

struct DdlRecord {
  char* sql;       // fit to be shown (ddl.no-clear-passwords)
  char* verifier;  // of the password that it speaks of; "": of none, or of NULL
  char* role;
  char* session_role;
  List* settings;         // DdlSetting*
  List* targets;          // DdlTarget*
  List* path;             // of int: open savepoints of the coordinator, outermost first
  List* made;             // DdlMade*, in the order in which they were made
  List* altered;          // DdlObject*
  List* pages;            // DdlPages*
  List* relation_states;  // DdlRelationState*
  List* labels;           // DdlLabel*
  List* sequences;        // DdlSequence*
  List* bounds;           // char*: of the partitions it makes or attaches, in the order of the statement
  List* added;            // of int: AddedDefault of each ADD COLUMN, in the order of the statement
  bool shared;            // it is about roles or databases, which belong to no database
  bool owned;             // and about what a role has in its database all the same
  DdlDatabase to_database;
  char* database;  // which; "": none
  char* outcome;   // digest of what the statement left in the catalogs; "" for none
};

// Whether it holds what the statement made: the objects of the extension itself have no OIDs in common.
inline bool has_outcome(const DdlRecord* record) { return record->outcome && *record->outcome; }

inline bool drops_database(const DdlRecord* record) {
  return record->to_database == DdlDatabase::kDrops || record->to_database == DdlDatabase::kDropsShared;
}

DdlRelationState* new_relation_state(Oid relation, int natts);  // nothing is known of it yet

void write_record(StringInfo to, const DdlRecord* record);
DdlRecord* read_record(StringInfo from);  // ERROR if it is not one

void write_ints(StringInfo to, const List* ints);
List* read_ints(StringInfo from);

}  // namespace gcl

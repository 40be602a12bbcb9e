// The relation record: how a local catalog entry finds its relation in the pool.  It lies in block 0 of the relation's
// local main-fork file, which is WAL-logged, dropped, copied and rolled back by PostgreSQL as any other file:
//
//   table   block 0: an ordinary page that holds nothing but the record
//   index   block 0: a valid btree metapage whose root is block 1, the record behind its data; block 1: zeroed, so that
//           a server without our dispatch fails loudly instead of finding an empty index
//   sequence  block 0: the row that SELECT shows, the record in place of the server's magic number (sequence/)
//
// runtime.record-never-changes: A file's record never changes after the transaction that made the file: caching it per
//     backend is safe until the relation's relcache entry is invalidated.
// runtime.record-names-pool: The record names its pool; a file that came from another pool (a copied data directory) is
//     refused, not used.
//
//   set_new_filenode:  RelationCreateStorage(...); write_relation_record(*newrnode, RelationFile::kTable, header);
//   anywhere:          PageId header = relation_page(rel);      // ERROR if there is none
//
// Every function may leave by ereport(ERROR); backends only, in a transaction.
#pragma once

extern "C" {
#include "postgres.h"

#include "storage/relfilenode.h"
#include "utils/relcache.h"
}

#include "coherence/base/ids.hpp"

namespace gcl {

enum class RelationFile : uint32_t { kTable = 1, kIndex = 2, kSequence = 3 };

// The pool this server has open; 0: none.  Set by the module when it attaches, before backends are forked.
extern uint64_t relation_record_pool_id;

// What the file of a relation of that relkind is.
RelationFile kind_of_file(char relkind);

// Registers the invalidation of the per-backend cache.  Called once per process, before the first relation_page().
void start_relation_records();

// Writes (or overwrites) the record in block 0 of the file, making the file's blocks if it is empty; WAL-logged.
// REQUIRES: the file exists and no other session can see it yet, or `rel` is locked AccessExclusive.
void write_relation_record(const RelFileNode& file, RelationFile kind, coherence::PageId header);

// The record of a sequence, for the special area of its page.
struct SequenceRecord {
  uint64_t words[4];
};
SequenceRecord sequence_record(coherence::PageId page);

// The header page of the relation (a table's header, a tree's meta page, a sequence's word); cached per backend.
coherence::PageId relation_page(Relation rel);

// A second page that belongs to it as long as the first does (a tree's root), where this backend has noted it; invalid:
// it has not.  Kept and forgotten with what relation_page() says.
coherence::PageId relation_root(Relation rel);
void note_relation_root(Relation rel, coherence::PageId root);

// The same by file, for a file that a rebuild replaces; not cached.  Invalid: the file is gone or names no page of this
// pool.
coherence::PageId relation_page_in_file(const RelFileNode& file, RelationFile kind);

// --- the seam to DDL replay --------------------------------------------------------------------------------------
// Object ids are the same on every primary, so the pages of a relation are shipped as (oid, page).
struct RelationSeam {
  // On a primary that replays: where the coordinator put the pages of `relid`.  False (or null): make new ones.
  bool (*next_relation_override)(Oid relid, coherence::PageId* header) = nullptr;
  // On a primary that replays: whether the coordinator's table got a TOAST relation now.  False (or null): decide
  // yourself.
  bool (*toast_override)(Oid relid, bool* needed) = nullptr;
  // On the coordinator: new pages were made for `relid`; to be shipped, and freed if the transaction rolls back.
  void (*relation_made)(Oid relid, RelationFile kind, coherence::PageId header) = nullptr;
};
extern RelationSeam relation_seam;

}  // namespace gcl

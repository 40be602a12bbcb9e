// The digest of catalog rows: what must be equal on every primary, and nothing else (no OIDs of access methods, nor of
// roles older than the extension, which each primary has its own of).  Relations by their rows; what they need, and
// what else a statement made or altered, by what it means (ddl.digest-compares-meanings).
#include "extension/pg/ddl/objects/ddl_digest.hpp"
#include "extension/pg/ddl/base/ddl_sql.hpp"
#include "extension/pg/ddl/objects/meanings.hpp"
#include "extension/pg/ddl/objects/relation_lines.hpp"
#include "extension/pg/ddl/objects/uses.hpp"

extern "C" {
#include "catalog/pg_type.h"
#include "common/md5.h"
#include "utils/snapmgr.h"
}

namespace gcl {
namespace {

const char* text_or_none(const char* text) { return text ? text : ""; }

// What the statement made or altered has the coordinator's OID.
char* line_of_stated(const DdlObject& object) {
  const bool is_type = object.catalog == TypeRelationId;
  return psprintf("%u|%s|%s|%s", object.oid, text_or_none(name_of(object)), text_or_none(meaning_of(object)),
                  text_or_none(is_type ? labels_with_oids(object.oid) : nullptr));
}

char* line_of_use(const DdlUse& use) {
  return psprintf("%s|%s", text_or_none(name_of(use.object)),
                  use.by_name ? "of an extension" : text_or_none(meaning_of(use.object)));
}

int compare_objects(const ListCell* a, const ListCell* b) { return memcmp(lfirst(a), lfirst(b), sizeof(DdlObject)); }

List* distinct(const List* objects) {
  List* sorted = list_copy(objects);
  list_sort(sorted, compare_objects);
  List* all = NIL;
  ListCell* cell;
  foreach (cell, sorted)
    if (all == NIL || memcmp(llast(all), lfirst(cell), sizeof(DdlObject)) != 0) all = lappend(all, lfirst(cell));
  return all;
}

int compare_lines(const ListCell* a, const ListCell* b) {
  return strcmp(static_cast<char*>(lfirst(a)), static_cast<char*>(lfirst(b)));
}

char* md5_of(const List* lines) {
  StringInfoData text;
  initStringInfo(&text);
  ListCell* cell;
  foreach (cell, lines) {
    appendStringInfoString(&text, static_cast<char*>(lfirst(cell)));
    appendStringInfoChar(&text, '\n');
  }
  char* sum = static_cast<char*>(palloc(MD5_PASSWD_LEN + 1));
  const char* error = nullptr;
  if (!pg_md5_hash(text.data, size_t(text.len), sum, &error)) elog(ERROR, "gcl: no digest: %s", error);
  return sum;
}

}  // namespace

char* digest_of(const List* relations, const List* objects) {
  const int nest = enter_fixed_settings();
  CommandCounterIncrement();
  PushActiveSnapshot(GetLatestSnapshot());  // the definitions of rules are read by a query
  List* lines = lines_of_relations(relations);
  ListCell* cell;
  foreach (cell, distinct(objects)) lines = lappend(lines, line_of_stated(*static_cast<DdlObject*>(lfirst(cell))));
  foreach (cell, uses_of(relations, objects)) lines = lappend(lines, line_of_use(*static_cast<DdlUse*>(lfirst(cell))));
  PopActiveSnapshot();
  leave_fixed_settings(nest);
  list_sort(lines, compare_lines);
  return md5_of(lines);
}

}  // namespace gcl

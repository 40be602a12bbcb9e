#include "extension/pg/catalog/names.hpp"

extern "C" {
#include "catalog/index.h"
#include "catalog/namespace.h"
#include "catalog/pg_class.h"
#include "utils/lsyscache.h"
}

namespace gcl {
namespace {

bool met_what_has_gone = false;

// A transaction that has just committed tells first that the rows are no more, and then the caches.
bool is_gone(Oid relation) {
  const char kind = get_rel_relkind(relation);
  const bool is_index = kind == RELKIND_INDEX || kind == RELKIND_PARTITIONED_INDEX;
  return kind == '\0' || (is_index && !OidIsValid(IndexGetRelation(relation, true)));
}

}  // namespace

void begin_names() { met_what_has_gone = false; }
bool names_met_what_has_gone() { return met_what_has_gone; }

static Oid unless_gone(Oid relation) {
  if (!OidIsValid(relation) || !is_gone(relation)) return relation;
  met_what_has_gone = true;
  return InvalidOid;
}

Oid find_relation(const RangeVar* name) {
  return unless_gone(name ? RangeVarGetRelid(name, NoLock, true) : InvalidOid);
}

Oid find_where_made(const RangeVar* name) {
  return unless_gone(get_relname_relid(name->relname, RangeVarGetCreationNamespace(name)));
}

}  // namespace gcl

#include "extension/pg/ddl/classify/publications.hpp"

#include "extension/pg/catalog/names.hpp"
#include "extension/pg/catalog/shared_relations.hpp"
#include "extension/pg/ddl/classify/ddl_plan.hpp"

namespace gcl {
namespace {

void warn_of_tables() {
  if (shared_tables(InvalidOid) == NIL) return;
  ereport(WARNING, (errcode(ERRCODE_FEATURE_NOT_SUPPORTED), errmsg("changes of gcl tables are not published"),
                    errdetail("A publication has the changes of its primary's heap tables only.")));
}

// True if it means tables that it does not name.
bool check_objects(const List* objects) {
  bool more = false;
  ListCell* cell;
  foreach (cell, objects) {
    const auto* object = lfirst_node(PublicationObjSpec, cell);
    more |= object->pubobjtype != PUBLICATIONOBJ_TABLE;
    if (object->pubobjtype == PUBLICATIONOBJ_TABLE && is_shared_table(find_relation(object->pubtable->relation)))
      refuse_ddl("publishing its changes");
  }
  return more;
}

}  // namespace

void check_publication(const Node* statement) {
  bool more;
  if (IsA(statement, CreatePublicationStmt)) {
    const auto* create = reinterpret_cast<const CreatePublicationStmt*>(statement);
    more = check_objects(create->pubobjects) || create->for_all_tables;
  } else {
    const auto* alter = reinterpret_cast<const AlterPublicationStmt*>(statement);
    if (alter->action == AP_DropObjects) return;
    more = check_objects(alter->pubobjects);
  }
  if (more) warn_of_tables();
}

}  // namespace gcl

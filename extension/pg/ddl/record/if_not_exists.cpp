#include "extension/pg/ddl/record/if_not_exists.hpp"

namespace gcl {

bool* if_not_exists_of(Node* statement) {
  switch (nodeTag(statement)) {
    case T_CreateStmt:
      return &castNode(CreateStmt, statement)->if_not_exists;
    case T_CreateTableAsStmt:
      return &castNode(CreateTableAsStmt, statement)->if_not_exists;
    case T_IndexStmt:
      return &castNode(IndexStmt, statement)->if_not_exists;
    case T_CreateSchemaStmt:
      return &castNode(CreateSchemaStmt, statement)->if_not_exists;
    case T_CreateSeqStmt:
      return &castNode(CreateSeqStmt, statement)->if_not_exists;
    case T_CreateStatsStmt:
      return &castNode(CreateStatsStmt, statement)->if_not_exists;
    case T_DefineStmt:
      return &castNode(DefineStmt, statement)->if_not_exists;
    default:
      return nullptr;
  }
}

bool made_nothing(const DdlRecord* record) { return record->made == NIL && record->altered == NIL; }

}  // namespace gcl

// Whether the user has the right to a statement, before anything is locked for it (ddl.no-lock-without-right).
#pragma once

#include "extension/pg/ddl/base/pg.hpp"

namespace gcl {

// False: the server refuses the statement, before it locks a relation.  True also for names that stand for nothing.
// Raises where the server would, with its words.
bool has_rights_for(const AlterTableStmt* statement);
bool has_rights_for(const RenameStmt* statement);
bool has_rights_for(const AlterObjectSchemaStmt* statement);
bool has_rights_for(const AlterSeqStmt* statement);
bool has_rights_for(const AlterObjectDependsStmt* statement);
bool has_rights_for(const RuleStmt* statement);
bool has_rights_for(const CreatePolicyStmt* statement);
bool has_rights_for(const AlterPolicyStmt* statement);
bool has_rights_for(const ViewStmt* statement);
bool has_rights_for(const IndexStmt* statement);
bool has_rights_for(const CreateStmt* statement);
bool has_rights_for(const CreateStatsStmt* statement);
bool has_rights_for(const CreateTrigStmt* statement);
bool has_rights_for(const TruncateStmt* statement);
bool has_rights_for(const DropStmt* statement);
bool has_rights_for(const AlterDomainStmt* statement);
bool has_rights_for(const DropOwnedStmt* statement);
bool has_rights_for(const ReassignOwnedStmt* statement);

// Of roles and databases.
bool has_rights_for(const AlterDatabaseSetStmt* statement);
bool has_rights_for(const AlterDatabaseStmt* statement);
bool has_rights_for(const AlterOwnerStmt* statement);
bool has_rights_for(const AlterRoleSetStmt* statement);
bool has_rights_for(const AlterRoleStmt* statement);
bool has_rights_for(const CommentStmt* statement);
bool has_rights_for(const CreateRoleStmt* statement);
bool has_rights_for(const CreatedbStmt* statement);
bool has_rights_for(const DropRoleStmt* statement);
bool has_rights_for(const DropdbStmt* statement);
bool has_rights_for(const GrantRoleStmt* statement);
bool has_rights_for(const SecLabelStmt* statement);

// For the row of a kind of statement: {T_ViewStmt, planned_by<plan_view>, rights_for<ViewStmt>}
template <class Statement>
bool rights_for(const Node* statement) {
  return has_rights_for(reinterpret_cast<const Statement*>(statement));
}

}  // namespace gcl

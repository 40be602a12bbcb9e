// A statement that is run here and told to the others: the coordinator's side of one DDL statement.
#pragma once

#include "extension/pg/ddl/classify/ddl_plan.hpp"
#include "extension/pg/ddl/utility_call.hpp"

namespace gcl {

// Takes the lock that the plan asks for, unless this transaction has it.
void open_ddl_transaction_for(const UtilityCall&, const DdlPlan&);

// REQUIRES: open_ddl_transaction_for(), and the plan's targets locked everywhere.
void run_captured(UtilityCall, const DdlPlan&);

}  // namespace gcl

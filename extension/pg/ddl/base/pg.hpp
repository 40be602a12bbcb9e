// PostgreSQL's headers, as ddl/ uses them.
#pragma once

extern "C" {
#include "postgres.h"

#include "access/xact.h"
#include "catalog/objectaddress.h"
#include "fmgr.h"
#include "lib/stringinfo.h"
#include "miscadmin.h"
#include "nodes/parsenodes.h"
#include "nodes/pg_list.h"
#include "nodes/plannodes.h"
#include "storage/latch.h"
#include "storage/lockdefs.h"
#include "storage/lwlock.h"
#include "utils/builtins.h"
#include "utils/memutils.h"
}

namespace gcl {

// REQUIRES: the node is one.
template <class Statement>
const Statement* as(const Node* node) {
  return reinterpret_cast<const Statement*>(node);
}

}  // namespace gcl

// OIDs of constraints: PostgreSQL has no way to ask for them beforehand, so replay changes them afterwards.
#pragma once

#include "extension/pg/ddl/ddl_record.hpp"

namespace gcl {

// The constraints of these tables (DdlConstraint*), in the caller's memory context.
List* constraints_of(List* relations);
// Gives the constraints of the same names these OIDs.  One that triggers refer to (a deferrable one) keeps its own.
void impose_constraint_oids(List* constraints);

}  // namespace gcl

// What relations and objects need, over any number of steps, of what users have made (ddl.digest-compares-meanings):
// functions in expressions and in triggers, types of columns, operators, operator classes with their members, casts,
// ...
#pragma once

#include "extension/pg/ddl/record/ddl_record.hpp"

namespace gcl {

struct DdlUse {
  DdlObject object;
  bool by_name;  // of an extension, which is each primary's own: only its name can be compared
};

// DdlUse*: beside those given.  `relations`: OIDs, `objects`: DdlObject*.
List* uses_of(const List* relations, const List* objects);

}  // namespace gcl

// What the catalogs say, in a form that is equal on all primaries (ddl.digest-compares-meanings).
#pragma once

#include "extension/pg/ddl/base/pg.hpp"

namespace gcl {

// md5 of what they say of these relations and objects (DdlObject*); in the caller's context.
char* digest_of(const List* relations, const List* objects);

}  // namespace gcl

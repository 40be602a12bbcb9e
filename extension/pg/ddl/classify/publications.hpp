// Publications: changes of gcl tables are not in any primary's logical decoding, so none is published.
#pragma once

#include "extension/pg/ddl/base/pg.hpp"

namespace gcl {

// CREATE or ALTER PUBLICATION: refuses gcl tables that are named, warns of those that are meant along.
void check_publication(const Node* statement);

}  // namespace gcl

// The OIDs of what all primaries have are from their coordinator's range (extension/oid_range.hpp).
#pragma once

#include "extension/pg/ddl/record/ddl_record.hpp"

namespace gcl {

Oid next_oid_of_server();
// Raises 54000 if the statement has taken OIDs that another primary may give; warns long before.  `before`: the
// server's next OID when it began.  What has an older one is replaced, and may be another primary's.
void check_own_oids(const DdlRecord* record, Oid before);

}  // namespace gcl

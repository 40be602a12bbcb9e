// The member worker: joins the node to the transaction system, and keeps it there (workers.hpp).
#pragma once

#include "extension/pg/workers/workers.hpp"

namespace gcl {

void member_worker(const Sampling&);

}  // namespace gcl

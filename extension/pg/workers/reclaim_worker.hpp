// The reclaim worker: frees what transactions made and did not keep, and sweeps ids of aborted ones out of pages.
#pragma once

namespace gcl {

void reclaim_worker();

}  // namespace gcl

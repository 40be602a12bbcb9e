#include "extension/pg/runtime/page_usage.hpp"

#include <algorithm>

extern "C" {
#include "executor/instrument.h"
#include "miscadmin.h"
#include "pgstat.h"
#include "utils/rel.h"
}

namespace gcl {

using bufmgr::PageTraffic;

PageAccessesTold page_accesses_told{};

namespace {

PageTraffic told;

// Seldom: something was fetched, changed or written.  Returns how many of the accesses were reads.
[[gnu::noinline, gnu::cold]] int64 tell_traffic(int64 accesses) {
  page_accesses_told.moved = page_accesses_told.session->moved();
  const PageTraffic now = page_accesses_told.session->traffic();
  const int64 read =
      std::min(int64(now.fetched - told.fetched), accesses);  // an interrupted fetch is one without a look
  const auto dirtied = int64(now.dirtied - told.dirtied);
  pgBufferUsage.shared_blks_read += read;
  pgBufferUsage.shared_blks_dirtied += dirtied;
  pgBufferUsage.shared_blks_written += int64(now.written - told.written);
  VacuumPageMiss += read;
  VacuumPageDirty += dirtied;
  if (VacuumCostActive) VacuumCostBalance += int(read * VacuumCostPageMiss + dirtied * VacuumCostPageDirty);
  told = now;
  return read;
}

}  // namespace

void tell_page_accesses(Relation rel) {
  const uint64_t all = page_accesses_told.session->page_accesses();
  const auto accesses = int64(all - page_accesses_told.accesses);
  page_accesses_told.accesses = all;
  const int64 hits =
      page_accesses_told.session->moved() == page_accesses_told.moved ? accesses : accesses - tell_traffic(accesses);
  pgBufferUsage.shared_blks_hit += hits;
  VacuumPageHit += hits;
  if (VacuumCostActive) VacuumCostBalance += int(hits * VacuumCostPageHit);
  if (rel == nullptr || !pgstat_should_count_relation(rel)) return;
  rel->pgstat_info->t_counts.t_blocks_fetched += accesses;
  rel->pgstat_info->t_counts.t_blocks_hit += hits;
}

void count_page_accesses_of(const bufmgr::Session* session) {
  page_accesses_told.session = session;
  if (session == nullptr) return;
  page_accesses_told.accesses = session->page_accesses();
  page_accesses_told.moved = session->moved();
  told = session->traffic();
}

}  // namespace gcl

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

LooksTold looks_told{};

namespace {

PageTraffic told;

// Seldom: something was fetched, changed or written.  Returns how many of the looks were reads.
[[gnu::noinline, gnu::cold]] int64 tell_traffic(int64 looks) {
  looks_told.moved = looks_told.session->moved();
  const PageTraffic now = looks_told.session->traffic();
  const int64 read = std::min(int64(now.fetched - told.fetched), looks);  // an interrupted fetch is one without a look
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

void tell_looks(Relation rel) {
  const uint64_t all = looks_told.session->looks();
  const auto looks = int64(all - looks_told.looks);
  looks_told.looks = all;
  const int64 hits = looks_told.session->moved() == looks_told.moved ? looks : looks - tell_traffic(looks);
  pgBufferUsage.shared_blks_hit += hits;
  VacuumPageHit += hits;
  if (VacuumCostActive) VacuumCostBalance += int(hits * VacuumCostPageHit);
  if (rel == nullptr || !pgstat_should_count_relation(rel)) return;
  rel->pgstat_info->t_counts.t_blocks_fetched += looks;
  rel->pgstat_info->t_counts.t_blocks_hit += hits;
}

void count_looks_of(const bufmgr::Session* session) {
  looks_told.session = session;
  if (session == nullptr) return;
  looks_told.looks = session->looks();
  looks_told.moved = session->moved();
  told = session->traffic();
}

}  // namespace gcl

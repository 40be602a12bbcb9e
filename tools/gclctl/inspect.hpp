// The kinds of gclctl inspect, a function each: print what there is, return the exit code, throw Failure.
#pragma once

#include <string>
#include <vector>

#include "coherence/inspect/pool_view.hpp"

namespace gclctl {

int inspect_pool_header(coherence::PoolView& pool);
int inspect_page(coherence::PoolView& pool, const std::string& page, int node);
int inspect_line(coherence::PoolView& pool, int line, int node);  // line -1: all that are not at rest
int inspect_arena(coherence::PoolView& pool, int node);
int inspect_ring(coherence::PoolView& pool, int node, int last);
// Of a cluster's primary: needs no pool.  `page` empty: all pages.
int inspect_wal(const std::string& dir, int node, const std::string& page, int last);
int inspect_status(coherence::PoolView& pool, const std::vector<std::string>& ids);

}  // namespace gclctl

// Looking into a pool from outside: which pool, and what is named on the command line.  For inspect and trace, which
// join nothing, lock nothing and change nothing.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bufmgr/base/page.hpp"
#include "coherence/base/text.hpp"
#include "coherence/inspect/arena_view.hpp"
#include "coherence/inspect/pool_view.hpp"

namespace gclctl {

// `where`: a cluster's directory, or the file of a pool.  Opens the pool in memory, or the saved one if memory has lost
// it, as the account that it belongs to, and runs `body` with it.  Fails with a sentence.
int look_into(const std::string& where, const std::function<int(coherence::PoolView&)>& body);

// "7", or "2:7" of memory node 2.
coherence::PageId page_named(coherence::PoolView& pool, const std::string& name);

// Those that are in the pool, or have died in it; or the one that is named (`node` > 0; checked).
std::vector<coherence::NodeId> nodes_named(const coherence::PoolView& pool, int node);

// Null, with a line that says why, if there is nothing to look at.
std::unique_ptr<coherence::ArenaView> arena_of(const coherence::PoolView& pool, coherence::NodeId node);

// How the header of the page in `bytes` reads.
std::string page_text(const std::byte* bytes);

template <class T>
std::string text_of_words(const T& words) {
  coherence::Text text;
  add(text, words);
  return text.c_str();
}

}  // namespace gclctl

// PageStore: pages that all nodes share, under latches: what concurrency control stands on here.
//
// From a thread's fiber, which has one page latched at a time, and any number kept.
#pragma once

#include <cstdint>
#include <memory>

#include "bench/paper/network.hpp"
#include "bench/paper/protocol.hpp"
#include "bench/txn/rows.hpp"

namespace txn {

class PageStore {
 public:
  virtual ~PageStore() = default;
  virtual void start() {}  // spawns what works beside the threads
  // The index that leads to a row is read.
  virtual void search(int node, const Row&) = 0;

  // Waits for latches.  Null: a transaction keeps the page in a mode that forbids this one.
  virtual std::byte* latch(int node, int thread, uint64_t page, bool write) = 0;
  // Under the exclusive latch: the row's line is what it now says.
  virtual void changed(int node, int thread, const Row&) = 0;
  virtual void unlatch(int node, int thread, uint64_t page, bool write) = 0;

  // In place of unlatch(): the transaction of this thread keeps these rows of the page, in that mode, until let_go();
  // the latch ends.  To other nodes it keeps the page.  False: another transaction of the node keeps one of these rows
  // in a mode that forbids this one; the latch has ended.
  virtual bool keep(int node, int thread, uint64_t page, bool write, Lines rows = kAllLines) = 0;
  // A page that is kept exclusively: latched again; nobody is met there.  Ends with unlatch().
  virtual std::byte* latch_kept(int node, int thread, uint64_t page) = 0;
  virtual void let_go(int node, int thread, uint64_t page, bool write) = 0;
};

std::unique_ptr<PageStore> make_selcc_store(const paper::Setup&, paper::Network&);
// `transactions`: pages are kept, so nobody waits for a latch (txn.no-wait).
std::unique_ptr<PageStore> make_sel_store(const paper::Setup&, paper::Network&, bool transactions);

inline Stored& stored(std::byte* page, uint32_t line) { return *reinterpret_cast<Stored*>(page + line * 64); }

inline constexpr int kIndexLevels = 3;  // of the tree that leads to a row (txn.index-is-read)

}  // namespace txn

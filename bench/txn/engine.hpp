// Engine: runs transactions, each a list of steps that is known beforehand, by one kind of concurrency control.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "bench/txn/log.hpp"
#include "bench/txn/page_store.hpp"
#include "bench/txn/rows.hpp"

namespace txn {

// What a committed transaction has read, and what it has written: rows, with the number of the version.
struct Seen {
  std::vector<std::pair<Row, uint64_t>> reads, writes;
};

class Engine {
 public:
  virtual ~Engine() = default;
  virtual void start() {}
  // From a thread's fiber.  False: it was rolled back, and nothing of it is left.
  virtual bool run(int node, int thread, std::span<const Step>, Seen*) = 0;
};

// Over pages that all nodes share.  `logs`: of each node.
std::unique_ptr<Engine> make_two_phase_locking(std::unique_ptr<PageStore>, std::vector<Log>& logs);
std::unique_ptr<Engine> make_timestamp_ordering(std::unique_ptr<PageStore>, std::vector<Log>& logs);
std::unique_ptr<Engine> make_optimistic(std::unique_ptr<PageStore>, std::vector<Log>& logs);
// As the product's SERIALIZABLE, with versions of rows, snapshots and a commit by words: holds of pages, or of rows
// within a node (`rows`) and of pages between nodes; or validation at the commit timestamp.
std::unique_ptr<Engine> make_holds(std::unique_ptr<PageStore>, paper::Network&, std::vector<Log>& logs, bool rows,
                                   int tries);
std::unique_ptr<Engine> make_validation(std::unique_ptr<PageStore>, paper::Network&, std::vector<Log>& logs, int tries);
// Each row has one node that alone has it: `owner(row)`.  Two-phase locking there, and two-phase commit between nodes.
using Owner = int (*)(const Row&, const void* of);
std::unique_ptr<Engine> make_partitioned(const paper::Setup&, paper::Network&, Owner, const void* of,
                                         std::vector<Log>& logs);

}  // namespace txn

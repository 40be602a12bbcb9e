// What the words of the copy say of transactions.  It is read before redo is applied: redo changes the pages that some
// of these words lie on.
//
// restart.copy-read-first: Statuses that the copy has words for are read out of the copy, whole: its ring, its pages of
//     words, its aborted list.
#pragma once

#include <cstdint>
#include <vector>

#include "extension/engine/txn/transaction.hpp"

namespace engine {

struct StatusesOfCopy {
  // Prepared by a node that died before the copy was made, and was not decided.
  struct InDoubt {
    uint64_t sequence;
    uint64_t first;  // of its transaction, which decides
  };
  struct Node {
    uint64_t reserved = 0;  // ids up to here may be in use
    uint64_t frozen = 0;    // ids up to here have no word
    // Of those between; others have committed, or were never used.
    std::vector<uint64_t> aborted{};
    std::vector<InDoubt> in_doubt{};
  };
  std::vector<Node> nodes{};  // by their ids
};

// REQUIRES: no other node is in the pool.  `txns` need not have joined.  Errors: those of reading a status.
Result<StatusesOfCopy> read_copy(TxnSystem& txns);

}  // namespace engine

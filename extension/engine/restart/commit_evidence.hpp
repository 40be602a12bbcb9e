// CommitEvidence: what one node's log says of the ends of its transactions.  It is fed in the order of the log, and may
// be asked when all logs have been read.
//
// restart.commit-behind-note: An id has committed if a note has it, and the host's commit record of that note's
//     transaction comes behind the note.  Several notes of one transaction before its commit record are one.  What is
//     noted when the host aborts the transaction, or restarts, has not committed.
// restart.verdict-beats-log: A survivor's verdict (roll_back) beats the log, and a decision to commit beats a verdict,
//     in whichever order they are said.  Both name a transaction's first id, and hold for its savepoints, too.
//
//   evidence.note(bytes); evidence.host_committed(xid); ...
//   if (evidence.committed(sequence)) ...
//
// One thread.  A bit for each id that committed, a byte or two more for each of a transaction with savepoints.  Written
// down, an id costs no more, and where nearly all have committed a byte or two for each of the others.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "coherence/base/byte_reader.hpp"
#include "coherence/base/result.hpp"

namespace engine {

class CommitEvidence {
 public:
  // As the log has it, and what that has beside it (../txn/txn_notes.hpp).  kCorrupt: it is none;
  // kIncompatible: it is of a kind that is not known.
  coherence::Status note(std::span<const std::byte> bytes, uint64_t beside = 0);
  // Records of the host, which names the transaction as the notes do.
  void host_committed(uint64_t xid);
  void host_aborted(uint64_t xid);
  // The host had crashed, and runs again: what ran has ended.
  void host_restarted();

  // Of the transaction whose first id this is.
  void roll_back(uint64_t sequence);
  void commit(uint64_t sequence);

  // All that the log has said, but not what roll_back() and commit() have: a restart that goes on says that again.
  // kCorrupt: these are no such bytes.
  std::vector<std::byte> written_down() const;
  static coherence::Result<CommitEvidence> read(std::span<const std::byte> bytes);

  // The highest number that the log has noted, or a death has told; 0: none.
  uint64_t greatest() const { return greatest_; }
  bool committed(uint64_t sequence) const;

 private:
  static constexpr uint64_t kBlockIds = 32768;
  static constexpr size_t kOthersMax = 1024;  // of a block, that are written down one by one
  struct Block {
    uint64_t word[kBlockIds / 64] = {};
  };
  using Ids = std::vector<uint64_t>;  // of a transaction, ascending: its own first

  Ids take_pending(uint64_t xid);
  void end(Ids ids, bool commits);
  void set(uint64_t sequence, bool committed);
  void set_all(uint64_t first, bool committed);
  void remember_group(const Ids& ids);
  static void put_block(std::vector<std::byte>* to, const Block& block);
  bool take_block(coherence::ByteReader* front);
  bool take(coherence::ByteReader* front);
  Ids find_group(uint64_t first) const;

  uint64_t greatest_ = 0;
  std::unordered_map<uint64_t, std::unique_ptr<Block>> committed_;  // by sequence / kBlockIds
  std::unordered_map<uint64_t, Ids> pending_;                       // noted, by the host's number
  std::unordered_map<uint64_t, Ids> undone_;  // not committed, for a decision that comes later; by the first id
  // Of transactions with savepoints that committed, for a verdict that comes later: how many, the first, distances.
  std::vector<std::byte> groups_;
  std::unordered_set<uint64_t> rolled_back_, decided_;
};

}  // namespace engine

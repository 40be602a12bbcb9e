// TxnNotes: what a node's log has of transactions besides the pages that they change.  The statuses of ids are words of
// the pool; if memory has lost the pool, they are made out of these notes and the host's own commit records.
//
// txn.ids-noted-before-use: The log has the number up to which ids may be in use before it has a change that names one
//     of them.  So all ids that a page may name are known.
// txn.commit-noted-before-host: The log has the ids of a transaction, its savepoints' included, and the host's
//     number of it, before the host's commit record.  They have committed if that record is there, and a note of
//     them; ids in use of which there is no such note were rolled back.  A transaction with many savepoints has
//     several notes.
// txn.savepoints-durable-first: The notes of a transaction with savepoints are durable before it is PREPARED.  A
//     process that decides it in place of its server names its first id alone, and a restart finds the others in the
//     notes (restart.verdict-beats-log).
//
//   note      kind          1 byte
//             kReserved:    the highest sequence                                varint
//             kCommits:     the host's number, 0 if it has none                 varint
//                           how many ids                                        varint
//                           the first sequence, then each one's distance to the one before    varint
//             kCommitsOne:  its sequence; the host's number is beside the note  varint
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "coherence/base/result.hpp"
#include "extension/engine/txn/txn_id.hpp"

namespace bufmgr {
class LogSink;
}

namespace engine {

struct TxnNote {
  enum Kind : uint8_t { kReserved = 1, kCommits = 2, kCommitsOne = 3 };  // the last one is read as kCommits
  static constexpr uint32_t kIdsMax = 256;                               // of one note
  Kind kind;
  uint64_t reserved = 0;            // kReserved
  uint64_t host_xid = 0;            // kCommits
  std::vector<uint64_t> sequences;  // kCommits; ascending
};

void note_reserved(bufmgr::LogSink&, uint64_t sequence);
// `sequences` ascend; there are as many notes as it takes.
void note_commit(bufmgr::LogSink&, uint64_t host_xid, std::span<const uint64_t> sequences);

// `beside`: what the log's frame has there (LogSink::number_beside_note()).  kCorrupt: these bytes are no note;
// kIncompatible: one of a kind that is not known.
coherence::Result<TxnNote> read_note(std::span<const std::byte> note, uint64_t beside = 0);

}  // namespace engine

// Which records of a node's log a restart, or a checkpoint, takes: those that have happened since the save, and of logs
// that are written meanwhile only those that are certain.
//
// recovery.certain-below-hole: A record that is behind a hole of its node's ring has never happened, if the node dies
//     now, though its log may have it (journal.void-behind-hole). So each ring is read first, up to its hole; then the
//     journal, which has how former incarnations have ended; then the logs, of which only records below that count.
#pragma once

#include <cstdint>
#include <span>

#include "bufmgr/log/record.hpp"
#include "coherence/base/ids.hpp"
#include "recovery/restart_journal.hpp"

namespace recovery {

enum class Certain : uint8_t {
  kNever,   // it has not happened since the save: it is passed over
  kYes,     // it is applied
  kNotYet,  // the log ends before it, for now
};

// `below`: the sequence of the hole in the node's ring; all ones, when the ring is gone.  A record of another format is
// certain: the merge refuses it.
inline Certain is_certain(std::span<const std::byte> record, coherence::NodeId node, const NodeHistory& history,
                          uint64_t below) {
  if (!bufmgr::check_format(record)) return Certain::kYes;
  const bufmgr::RecordHeader header = bufmgr::RecordReader(record).header();
  if (header.node != node.value) return Certain::kNever;
  if (header.sequence >= below) return Certain::kNotYet;
  return history.counts(header.sequence) ? Certain::kYes : Certain::kNever;
}

}  // namespace recovery

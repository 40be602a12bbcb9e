// Files that lie beside a pool's durable copy and count until the next save: what has happened since the last one.
//
//   <durable path>.journal        PoolJournal
//   <durable path>.checkpoint     of the layers above: what the copy has become
//   <durable path>.delta          its pages that differ
//   <durable path>.backed_up      empty: somebody may want to go on from a backup, so the journal keeps all
//
// Each says of itself which save it stands on (pool.journal-until-saved), so one that is left over is passed over.
#pragma once

#include <cstdint>

namespace coherence {

struct BesideCopy {
  enum Kind : uint8_t { kJournal, kCheckpoint, kDelta, kBackedUp };
  BesideCopy(const char* durable_path, Kind) noexcept;
  char text[560];
};

// REQUIRES: a save that is later than all of them, or no pool.
void forget_since_save(const char* durable_path) noexcept;

}  // namespace coherence

// That `upgrade` is about to stop a primary to give it other software: DIR/node<K>/upgrade says which.
//
// gclctl.upgrade-goes-on: The note is on the disk before the primary is stopped, and goes when it is up again. An
//     `upgrade` that was killed in between leaves the note: `status` shows it, and the next `upgrade` starts that
//     primary. `stop` and `remove-primary` drop the note, too: the primary is to be down then.
#pragma once

#include <string>

#include "coherence/region/pool_lock.hpp"
#include "tools/gclctl/cluster.hpp"

namespace gclctl {

void note_upgrade(const Cluster&, int k, const std::string& software);
void drop_upgrade_note(const Cluster&, int k);
bool has_upgrade_note(const Cluster&, int k);
// For `status`; empty if there is none.
std::string upgrade_in_words(const Cluster&, int k);

// `upgrade` has it while it works.
inline coherence::PoolLock lock_upgrade(const fs::path& dir, coherence::PoolLock::Patience patience) {
  return coherence::PoolLock((dir / "upgrade").c_str(), patience);
}

}  // namespace gclctl

// Taking a snapshot again, in place: who refers to it, registers it or has it as the active one goes on to.
//
// pg_txn.renewed-unless-used: Only what nobody has looked with yet is renewed (pg_txn.snapshots-of-one-time).
// pg_txn.xmin-stays: `xmin` stays: what lies between it and the new one's is in no list of running ones, so it counts
//     as ended.  So nothing that the server keeps by xmin changes: its heap of registered snapshots, what this process
//     holds back.
// pg_txn.lists-lie-apart: The lists of running ones lie apart from the snapshot, until the transaction ends or has no
//     snapshot.
#pragma once

#include "extension/pg/boundary/pg.hpp"

namespace gcl {

void renew(Snapshot snapshot);
void renew_as(Snapshot snapshot, Snapshot renewed);  // a copy, from before, of what was renewed
// No snapshot of the transaction is left.
void forget_renewed() noexcept;

}  // namespace gcl

// Taking a snapshot again, in place: pointers to it, its registrations and its place as the active one stay valid.
//
// pg_txn.renewed-unless-used: Only a snapshot that has not been used yet is renewed (pg_txn.snapshots-of-one-time).
// pg_txn.xmin-stays: `xmin` stays, and with it what the server keeps by it: its heap of registered snapshots, and what
//     this process holds back.  Transactions between the old and the new xmin are in no list of running ones, so they
//     count as ended.
// pg_txn.lists-lie-apart: The lists of running transactions lie apart from the snapshot, until the transaction ends or
//     has no snapshot.
// pg_txn.copy-shows-original: A copy that shows what the server's own snapshot shows, as that was filled last, is
//     as good as one taken then: none ends between two moments that show the same.  So it has the count of ended
//     transactions that the copy lacks.
#pragma once

#include "extension/pg/boundary/pg.hpp"

namespace gcl {

// Whether the copy has the count of ended transactions now (pg_txn.copy-shows-original).
bool recognize(Snapshot copy);
void renew(Snapshot snapshot);
void renew_as(Snapshot snapshot, Snapshot renewed);  // a copy, from before, of what was renewed
// No snapshot of the transaction is left.
void forget_renewed() noexcept;

}  // namespace gcl

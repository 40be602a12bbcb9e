// WaitRecord: one wait, as the primary that sees it tells it to all others: waiter, since when, target.
//
// waitgraph.record-names-sleep: (node, incarnation, process, wait) names one sleep of one process for ever: the process
//     never uses a `wait` twice.  So a record that is found again, in a list that was made later, proves that the
//     process slept all the time.
// waitgraph.party-is-process: A party is a process of a primary; an apply worker that runs another primary's DDL is the
//     coordinator's party, for it holds locks and waits on the coordinator's behalf.  `process` always is the one that
//     really sleeps, where it sleeps.
// waitgraph.record-per-blocker: A process with several blockers has one record for each: all must go before it can go
//     on.
// waitgraph.proxy-while-waiting: A proxy's record counts only while the coordinator says (kReplies) that it waits for
//     its proxies, in that DDL transaction.
#pragma once

#include <cstdint>
#include <cstring>

#include "extension/engine/txn/txn_id.hpp"

namespace engine {

enum class WaitKind : uint8_t {
  kLock,     // for a process of the same primary, in its lock manager
  kRemote,   // for a transaction of another primary (target_txn), on the tag that stands for it
  kReplies,  // coordinator of DDL or LOCK TABLE: until the others have answered; their proxies name the targets
  kDdlLock,  // for a DDL lock, before this primary has a tag to wait on
  kHolder,   // does not wait: its transaction is one that another primary waits for
};

struct WaitParty {
  uint64_t ddl_transaction = 0;  // the DDL transaction this is about; 0: none, as a target also "whichever"
  uint32_t pid = 0;
  uint8_t node = 0xff;
  uint8_t reserved[3]{};
};

inline constexpr uint32_t kWaitTextBytes = 96;  // the longest name of a lock has 92

struct WaitRecord {
  uint64_t incarnation = 0;  // of `node`
  uint64_t wait = 0;         // waitgraph.record-names-sleep
  int64_t since_us = 0;      // when the sleep began, by the clock of `node`
  uint64_t waiter_txn = 0;   // raw top id of the waiter's transaction; 0: it has written nothing
  uint64_t target_txn = 0;   // kRemote
  WaitParty waiter;
  WaitParty target;             // kLock, kDdlLock
  uint32_t process = 0;         // waitgraph.party-is-process: pid on `node`
  uint32_t target_process = 0;  // kLock: pid on `node`
  uint32_t session = 0;         // of `process`
  uint32_t timeout_ms = 0;      // if it may give way: the waiter's deadlock_timeout
  uint8_t node = 0xff;          // that tells it
  WaitKind kind = WaitKind::kLock;
  uint8_t may_give_way = 0;  // whether this process can be told to give way
  uint8_t reserved[5]{};
  char what[kWaitTextBytes]{};  // "ShareLock on transaction 77"; ends with a zero

  bool is_proxy() const { return waiter.node != node || waiter.pid != process; }
  bool operator==(const WaitRecord& o) const {  // the same wait for the same party
    return node == o.node && incarnation == o.incarnation && process == o.process && wait == o.wait && kind == o.kind &&
           waiter_txn == o.waiter_txn && target_txn == o.target_txn && memcmp(&waiter, &o.waiter, sizeof waiter) == 0 &&
           memcmp(&target, &o.target, sizeof target) == 0 && target_process == o.target_process;
  }
};
static_assert(sizeof(WaitRecord) == 192 && sizeof(WaitParty) == 16);

}  // namespace engine

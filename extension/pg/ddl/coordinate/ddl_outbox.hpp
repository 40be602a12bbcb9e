// The coordinator's end of a slot: messages to the other primaries, and waiting for what they answer.
//
// A transaction has one outbox, from its first lock or statement that concerns others until all have ended it.
#pragma once

#include "extension/pg/ddl/base/ddl_port.hpp"
#include "extension/pg/ddl/coordinate/ddl_lock.hpp"

namespace gcl {

// (ddl.slot-wait-bounded)
inline constexpr long kSlotWaitMaxMs = 60'000;
// An answer that takes longer is reported: to the session that waits for it, and in the log of the primary that owes
// it.
inline constexpr TimestampTz kDdlPatienceUs = 5'000'000;

class DdlOutbox {
 public:
  bool open() const { return slot_ >= 0; }
  bool used() const { return first_ != 0; }  // something was posted
  // Takes a slot; may wait.  `nowait`: raises 53400 instead.  `database`: in which the others serve it; "": in any
  // (ddl.roles-of-no-database).
  void take(const char* database, bool nowait);
  const char* database() const { return database_; }
  // Never raises.  Wakes no process: ddl_log.slot-given-up-early.
  void give_up();

  void set_right(DdlRight right, int lock) {
    right_ = right;
    lock_ = lock;
  }
  void set_txn(uint64_t txn) { slot().set_txn(txn); }
  void set_log_number(uint64_t number) { log_number_ = number; }
  void set_of_cluster(bool of_cluster) { of_cluster_ = of_cluster; }

  // The primaries that a message would go to now.
  engine::DdlMembers members() { return ddl_channel().members(); }
  // Posts a message, in parts if it is longer than the window, and waits until all of `to` have dealt with it.
  void send(engine::DdlKind kind, StringInfo body, const engine::DdlMembers& to);
  void send_to_all(engine::DdlKind kind, StringInfo body) { send(kind, body, members()); }
  // The replies that are no failure say what the statement has dropped along that was their primary's own.
  void tell_local_drops();
  // Tells all members what is not waited for.  False: it is longer than the window.
  bool tell(engine::DdlKind kind, StringInfo body);
  // ddl_log.owner-posts, without raising: until the last message was dealt with, or the pool is fenced.
  void wait_for_the_last() noexcept;
  void wait_for_commits() noexcept;  // the same, with a warning when that takes long
  void cancel_the_last() noexcept { slot().cancel(last_); }

  // What all have locked, for a primary that joins (ddl_log.joiner-takes-locks).
  void list_target(uint32_t index, const engine::DdlTargetWord& target) { slot().list_target(index, target); }
  void set_granted(uint32_t count) { slot().set_granted(count); }

 private:
  engine::DdlSlot slot() const { return ddl_slot(slot_); }
  uint64_t post(engine::DdlKind kind, const char* part, uint32_t bytes, uint32_t offset, uint32_t total);
  bool answered(coherence::NodeId* failed, coherence::NodeSet* missing = nullptr);
  void wait_answered(bool raise_failure);
  void wait_or_cancel(bool raise_failure);
  [[noreturn]] void raise_reply(coherence::NodeId node);

  int slot_ = -1;
  uint64_t first_ = 0, last_ = 0;  // numbers of messages; 0: none
  uint64_t log_number_ = 0;
  DdlRight right_ = DdlRight::kLocks;
  int lock_ = 0;
  bool of_cluster_ = false;
  engine::DdlMembers to_{};  // the primaries that the last message is for
  char database_[NAMEDATALEN]{};
};

// In a reply's text, before its hint.
inline constexpr char kReplyHint = '\f';

// The wait graph's name for a DDL transaction: slots count their messages each for itself.
uint64_t ddl_transaction_id(int slot, uint64_t first);

// Locks that are free for all that concerns them: what ended, or was rolled back, on another primary, and has not been
// dealt with here yet.  Short.
void wait_for_ended_ddl_transactions();

}  // namespace gcl

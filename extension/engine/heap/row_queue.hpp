// RowQueuePosition: a session's place in the queue of those of its server that wait for a row.
//
//   RowQueuePosition queue(txns.waiter(), table, mode);
//   for (;;) {
//     judge the row; done if it may be locked
//     auto waited = queue.enter(tid);       // the first time; again for another row
//     if (!*waited) wait for the holder
//   }                                       // left at the end
//
// heap.holder-skips-queue: A session that holds a lock of the row, or has booked it, skips the queue: the session at
//     its head may wait for that very lock or booking.
// heap.book-after-losses: A session that has waited for kLossesMax transactions of other nodes and finds that yet
//     another one was faster books the row before it waits again: an entry in the row's lock pages names its id, the
//     mode, and a place behind all others; one per node at a time.  The booking stands on the version that the session
//     waits for and on the newest one there is, goes along to versions that are made later, and ends with its id.
// heap.bookings-in-order: A session that wants a row of which it has no lock waits for the owners of earlier bookings,
//     but only for those that could have the row now.  So a booking keeps no session from a row that is not free for
//     the booking's owner, and an owner that is waited for waits itself for no lock of the row: the wait adds no edge
//     to a cycle.
#pragma once

#include "extension/engine/heap/row.hpp"
#include "extension/engine/txn/host.hpp"

namespace engine {

class RowQueuePosition {
 public:
  // Bound: the session gets the row after at most so many transactions that were faster, the one that holds it by then,
  // and one of each other node that has booked before.
  static constexpr int kLossesMax = 2;

  RowQueuePosition(Waiter& waiter, uint32_t table, RowLock mode)
      : waiter_(waiter), queue_{.table = table, .mode = uint8_t(mode)} {}
  RowQueuePosition(const RowQueuePosition&) = delete;
  RowQueuePosition& operator=(const RowQueuePosition&) = delete;
  ~RowQueuePosition() { leave(); }

  // Whether it had to wait: then the row is to be judged again.  REQUIRES: no guard held.
  coherence::Result<bool> enter(Tid tid) {
    if (entered_ && queue_.block == tid.block && queue_.line == tid.offset) return false;
    leave();
    queue_.block = tid.block;
    queue_.line = tid.offset;
    auto waited = waiter_.enter_row_queue(queue_);
    entered_ = waited.ok();
    return waited;
  }
  RowLock mode() const { return RowLock(queue_.mode); }
  // To be called before each wait for another node's transaction; whether it is time to book (heap.book-after-losses).
  bool loses_again() { return ++waits_ > kLossesMax; }
  void leave() noexcept {
    if (entered_) waiter_.leave_row_queue(queue_);
    entered_ = false;
  }

 private:
  Waiter& waiter_;
  RowQueue queue_;
  bool entered_ = false;
  int waits_ = 0;
};

}  // namespace engine

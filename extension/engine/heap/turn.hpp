// Turn: a session's place in the queue of those of its server that wait for a row.
//
//   Turn turn(txns.waiter(), table, mode);
//   for (;;) {
//     judge the row; done if it may be locked
//     auto waited = turn.take(tid);         // the first time; again for another row
//     if (!*waited) wait for who has locked it
//   }                                       // let go at the end
//
// C6. Who holds a lock of the row takes no turn: the one whose turn it is may wait for that very lock.
#pragma once

#include "extension/engine/heap/row.hpp"
#include "extension/engine/host.hpp"

namespace engine {

class Turn {
 public:
  Turn(Waiter& waiter, uint32_t table, RowLock mode) : waiter_(waiter), turn_{.table = table, .mode = uint8_t(mode)} {}
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() { end(); }

  // Whether it had to wait: then the row is to be looked at again.  REQUIRES: no guard held.
  coherence::Result<bool> take(Tid tid) {
    if (taken_ && turn_.block == tid.block && turn_.line == tid.offset) return false;
    end();
    turn_.block = tid.block;
    turn_.line = tid.offset;
    auto waited = waiter_.take_turn(turn_);
    taken_ = waited.ok();
    return waited;
  }
  void end() noexcept {
    if (taken_) waiter_.end_turn(turn_);
    taken_ = false;
  }

 private:
  Waiter& waiter_;
  RowTurn turn_;
  bool taken_ = false;
};

}  // namespace engine

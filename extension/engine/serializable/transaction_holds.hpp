// TransactionHolds: strict two-phase locking of one session's transactions by holds on pages (rules.md).
//
//   TransactionHolds holds(txns, table);      // once per session; the session asks it from then on
//   holds.begin();                            // a serializable transaction that may write
//   ... heap and blink hold what they read and write; kHeld: nothing has changed: wait(), and call again
//   if (!holds.keep()) ...                    // they were given up: what was written must not be committed
//   txns.commit(); holds.end();               // in this order (serializable.strict)
#pragma once

#include "bufmgr/page_holds.hpp"
#include "extension/engine/memory/growing_map.hpp"
#include "extension/engine/serializable/hold_table.hpp"
#include "extension/engine/txn/transaction.hpp"

namespace engine {

class TransactionHolds final : public bufmgr::PageHolds {
 public:
  TransactionHolds(TxnSystem& txns, HoldTable& table);
  ~TransactionHolds() override;
  TransactionHolds(const TransactionHolds&) = delete;

  // From now on the running transaction holds what it reads and writes, at most `most` pages.  `patience_ms`: as
  // Holder::begin().
  void begin(uint32_t most, int32_t patience_ms = kPatienceForever);
  bool begun() const { return txns_.session().holding(); }
  // Whether its holds have been given up (HoldGiver): it may only read from now on, or roll back.
  bool given_up() const noexcept;
  uint32_t idle_ms() const noexcept { return holder_.idle_ms(); }  // if so: it was idle for so long
  // Gives them up itself, all of them, because of that outcome: kNoHolds, kConflict.  False: it has none, or they were
  // given up before.
  bool give_up(Errc why) noexcept;
  Errc gave_up() const noexcept { return gave_up_; }  // why it did; kOk: it did not
  // They are gone, and the transaction reads on by its snapshot alone (serializable.given-up-reader).
  void read_on() noexcept;
  // Before the transaction ends: nobody takes them away from now on.  False: they were given up.
  bool keep() noexcept;
  // REQUIRES: the transaction has ended, for all nodes.
  void end() noexcept;
  uint32_t held() const { return held_; }

  // After kHeld, of any session: waits until the transaction that holds the page has ended, or its holds were given up,
  // as far as it is known.
  // Then the operation is called again.  kInterrupted: the host must raise what is pending.
  Status wait();

  bool held_by_others(PageId page, uint64_t* by) noexcept override;
  bool writes(PageId page) const noexcept override;
  Result<bool> hold(PageId page, bool exclusive, bufmgr::Parts parts, Intent intent) override;
  Status hold_part(PageId from, bufmgr::ExclusiveGuard& part) override;

 private:
  struct Mine {
    PageId page;
    bufmgr::Parts read = 0, write = 0;
    bool has(bool exclusive, bufmgr::Parts parts) const {
      return page.valid() && (parts & ~(exclusive ? write : read | write)) == 0;
    }
  };
  template <class Guard>
  Result<bool> enter(Guard& guard, bool exclusive, bufmgr::Parts parts);
  template <class Guard>
  Result<bool> enter_latched(Result<Guard> guard, bool exclusive, bufmgr::Parts parts);
  void note_mine(Mine* mine, PageId page, bool exclusive, bufmgr::Parts parts);
  void leave_all() noexcept;
  void forget() noexcept;
  Status stand_behind_writer(PageId page);
  Result<bool> writer_waits_elsewhere(PageId page);
  bool meets_upgrader_elsewhere(PageId page);
  Result<TxnId> id_of(coherence::Holder holder);

  TxnSystem& txns_;
  HoldTable& table_;
  Holder& holder_;
  GrowingMap<Mine> mine_;
  TxnId by_;  // valid while anything is held
  uint32_t held_ = 0, most_ = 0;
  int32_t patience_ms_ = kPatienceForever;
  Errc gave_up_ = Errc::kOk;
};

}  // namespace engine

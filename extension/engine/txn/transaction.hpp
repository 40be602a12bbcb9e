// Transaction: a session's running transaction and its writing savepoints, and TxnSystem, the cluster's transaction
// machinery (status log, clock, horizons) as one session sees it.
//
// Order of a commit (the client hears last):
//   prepare()   if the host has changed things of its own: redo, status of the top id -> PREPARED (host: PRE_COMMIT)
//   [host writes and flushes its own commit record, and with it all redo]
//   commit()    redo + COMMITTING + FAA on the clock in one batch, then CAS -> COMMITTED(cts)    (host: COMMIT)
//   abort()     one status write; nothing is undone on pages; never fails                        (host: ABORT)
//
// A TxnSystem and its Transaction belong to one session (one process, or one test thread); TxnShared is the node's
// part, in memory that all processes of the node map.  Rules: rules.md.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "bufmgr/buffer_pool.hpp"
#include "bufmgr/session.hpp"
#include "extension/engine/memory/growing_array.hpp"
#include "extension/engine/txn/combo_commands.hpp"
#include "extension/engine/txn/host.hpp"
#include "extension/engine/txn/leftovers.hpp"
#include "extension/engine/txn/snapshot.hpp"
#include "extension/engine/txn/speculation.hpp"
#include "extension/engine/txn/txn_id.hpp"
#include "extension/engine/txn/txn_shared.hpp"
#include "extension/engine/txn/txn_status.hpp"
#include "extension/engine/txn/txn_words.hpp"

namespace engine {

using bufmgr::BufferPool;
using bufmgr::Session;
using coherence::Errc;
using coherence::Intent;
using coherence::NodeSet;
using coherence::PageId;
using coherence::Result;
using coherence::SessionId;
using coherence::Status;

// The session's own ids: the top and the savepoints that wrote and were not rolled back.
class Transaction {
 public:
  TxnId top() const { return own_.empty() ? TxnId{} : own_.front().id; }  // invalid: nothing written yet
  bool wrote() const { return !own_.empty(); }
  // Whether it has an id for others to wait for, and nothing was written with it.
  bool only_holds() const { return only_holds_; }
  // Whether `id` is the top or a live savepoint of this transaction.
  bool is_mine(TxnId id) const { return !own_.empty() && (own_.back().id == id || (own_.size() > 1 && has(id))); }
  // Whether only the transaction's end ends what `id` has: it is the top, or has been released into it.  REQUIRES:
  // is_mine(id).
  bool lasts(TxnId id) const;
  // What rows of its own have no room for.
  ComboCommands& commands() { return commands_; }
  const ComboCommands& commands() const { return commands_; }

 private:
  friend class TxnSystem;
  struct Own {
    TxnId id;
    int level;  // nesting level the id belongs to now; never falls from one entry to the next
  };
  const Own* find(TxnId id) const;  // null: not ours
  bool has(TxnId id) const { return find(id) != nullptr; }
  GrowingArray<Own> own_;       // in the order of assignment, which is the order of the ids
  GrowingArray<TxnId> levels_;  // the id of each open level, outermost first; invalid: has not written
  ComboCommands commands_;
  bool only_holds_ = false;  // its id is in no row
  bool prepared_ = false;
  bool word_prepared_ = false;  // and its word says so
};

// What became of an id, its savepoint chain resolved to the top.
struct TxnStatus {
  TxnState state;  // kActive, kPrepared (both: running), kCommitted or kAborted
  Cts cts;         // kCommitted; kFrozenCts when it is older than every snapshot
  TxnId top;       // running: the top-level transaction to wait for
  TxnId parent;    // kAborted savepoint: the id it was rolled back to (txn.abort-names-parent)
  bool running() const { return state == TxnState::kActive || state == TxnState::kPrepared; }
  bool committed() const { return state == TxnState::kCommitted; }
  bool aborted() const { return state == TxnState::kAborted; }
};

class OpenLevels;
class StatusBatch;

// What waits need to know of a running id.
struct Owner {
  TxnId top;
  TxnState state;     // of the top
  SessionId session;  // of the owner on its node, while running
};

// A lock that ends with its session, for what one session does at a time (VACUUM of a relation).  It lies where every
// session looks before it does the same.
struct SessionLock {
  uint64_t token = 0;  // never the same twice; 0: no lock
  uint64_t place = 0;  // of the locking session: node, session
  static SessionLock of(uint64_t token, NodeId node, SessionId session) {
    return {token, uint64_t{node.value} << 16 | session.value};
  }
  NodeId node() const { return {uint8_t(place >> 16)}; }
  SessionId session() const { return {uint16_t(place)}; }
  bool operator==(const SessionLock&) const = default;
};

class TxnSystem {
 public:
  TxnSystem(BufferPool& pool, Session& session, TxnShared& shared, Waiter& waiter, NodeWaker& waker);
  TxnSystem(const TxnSystem&) = delete;
  TxnSystem& operator=(const TxnSystem&) = delete;
  ~TxnSystem() { wait_given_back(); }

  // --- the node (one process of it calls these) ---------------------------------------------------------------------
  // Ends what the node's former incarnation left, continues its id sequence from the pool's words and starts to count
  // for the horizon.  REQUIRES: once per incarnation, before any session of the node takes a snapshot or an id.  `host`
  // says what became of transactions that are in doubt; without it, or when it cannot tell, they are an error (without:
  // kCorrupt).
  Status join(HostCommits* host = nullptr);
  // What join() does first; earlier, for a host that notes its join elsewhere (journal.doubts-before-join).  It changes
  // no page.
  Status resolve_former_incarnation(HostCommits* host);
  // Stops counting for the horizon.  REQUIRES: no session of the node has a snapshot or a transaction.
  void leave() noexcept;
  // Publishes the node's bound, refreshes its horizon, truncates the status log, and wakes the sleepers that are behind
  // this node.  Two or three batches.  True: something has moved since the last call, so that the next one is due in
  // some tens of milliseconds.
  Result<bool> tick();
  // The node's member worker will not call tick() until it is woken (txn.sleepers-are-woken).  False: that is said only
  // now, and another tick() comes first.  Called before each sleep.
  Result<bool> fall_asleep();
  // Whether a session has woken the member worker since fall_asleep().
  bool roused() const noexcept;
  // The member worker calls tick() by itself again.  Also first of all in a process.
  Status stay_awake();

  // --- nodes that died (rules.md, "What a dead node left") ----------------------------------------------------------
  // Ends what they left, and wakes those that waited for it.  One load while no node comes, goes or dies.  For a worker
  // of each node; after an error, and after each change of the members, it is due again.
  Status end_dead_nodes();
  // The same for one that is dead (it still is, or nothing is done), as often as it is called.
  Result<Leftovers::Ended> end_dead_node(NodeId dead);
  // What that makes of PREPARED ids, which the node's log may contradict (repair.recorded-first).
  Result<std::vector<Leftovers::Verdict>> verdicts_on(NodeId dead);
  // What other nodes left that is in doubt (txn.in-doubt-until-back).
  Result<std::vector<InDoubt>> in_doubt();
  // Decides one of them (txn.doubt-decided-once).  Whether it is committed: not as `commit` says if it was decided
  // before.  kNotFound: it is not in doubt, or its node is there.
  Result<bool> decide_in_doubt(TxnId id, bool commit, const Leftovers::Record& record = {});

  // --- life of a transaction ----------------------------------------------------------------------------------------
  Transaction& current() { return txn_; }
  const Transaction& current() const { return txn_; }
  // The host's own number for the running transaction, or for its savepoint of that nesting level, for local waits.
  // Call before the level's first write; a savepoint without one is waited for by its transaction's.
  void set_host_xid(uint32_t xid, int level = 1) noexcept;
  // The id that writes of the current nesting level carry; assigned, parents first, at the first write of that level.
  // kNoIds: too many ids of this node have run for longer than the status log takes to go round
  // (txn.running-id-pinned); kNoSpace: the pool has no pages for words that old snapshots and long transactions keep;
  // kNoMemory.
  Result<TxnId> id_for_write();
  // The id of the transaction, for others to wait for while it holds pages (only_holds()).  Errors as id_for_write().
  Result<TxnId> id_to_hold();
  // Savepoints, by the host's nesting level (1 = top): begin(2), then commit(2) or abort(2).
  Status sub_begin(int level);          // kNoMemory: it has not begun
  void sub_commit(int level) noexcept;  // its ids become the parent's
  void sub_abort(int level) noexcept;   // one status write per level that wrote
  // Nothing to do for a transaction that wrote nothing.  `host_xid`: the host's number of it, if it changed anything
  // that is the host's own; 0: gcl tables alone, and no word says PREPARED (txn.prepared-if-mixed).  kFenced: another
  // session decided this status.
  Status prepare(uint64_t host_xid = 0);
  // REQUIRES: prepared, or nothing written.  Returns the zero Cts if nothing was written; if a reader was faster and
  // the word has left its place since, perhaps kFrozenCts.
  Result<Cts> commit();
  void abort() noexcept;

  // --- reading the clock --------------------------------------------------------------------------------------------
  // A timestamp that sees everything that was committed, anywhere, before the call; the session counts for the horizon
  // with it (or an older one it still has) until set_oldest().  One round trip.  With the intent to write, the
  // transaction's id comes in the same one, if it has none (txn.id-comes-along).
  Result<Cts> take_snapshot(Intent intent = Intent::kRead);
  // From now on the session counts for the horizon, until set_oldest(): what is there now, or comes, and goes later,
  // stays (txn.counts-from-bound).  No round trip.
  void count_in() noexcept;
  // Gives back an id that came along and that nothing was written with.
  void give_back_id_ahead() noexcept;
  // The session counts with a timestamp that another session of this node has.  It may be used if the other one is then
  // seen to have it still (txn.timestamp-handover-counted).
  void adopt_snapshot(Cts ts) noexcept;
  // The oldest timestamp this session still needs; nullopt: none.  May only grow, by dropping snapshots.
  void set_oldest(std::optional<Cts> oldest) noexcept;

  // --- statuses -----------------------------------------------------------------------------------------------------
  // Final ones come from the session's cache; others cost one batch (StatusBatch: one for many).  A reader that meets
  // COMMITTING finishes it.
  Result<TxnStatus> status(TxnId id);
  // The same of an id that may never have been used; nullopt: it has not, or was passed over, and nothing names it.
  // What has no word any more counts as used.
  Result<std::optional<TxnStatus>> status_if_used(TxnId id);
  // The final word of the id, if the session's cache has it.
  std::optional<StatusWord> cached_word(TxnId id) const {
    const Cached& cached = cache_[cache_slot(id)];
    return cached.id == id.raw ? std::optional(cached.word) : std::nullopt;
  }
  // What is known without touching the pool: final statuses in the cache, and of ids that have no word any more.
  std::optional<TxnStatus> known_status(TxnId id) const;
  // Whether it is known; then status() does not touch the pool for it until this session has learned another one.  A
  // page of the aborted list that was at hand may be away when it is asked for again.
  bool keep_known(TxnId id);
  bool are_kept(TxnId one, TxnId other) const { return one == other || cache_slot(one) != cache_slot(other); }
  Result<Owner> owner(TxnId id);
  // Every version deleted by a transaction with cts <= this is invisible to every snapshot, now and later.
  Cts horizon() const noexcept;
  // Wakes the member workers of nodes whose bound is not above `wanted`: they publish, and the next call may find it.
  Result<Cts> refresh_horizon(Cts wanted = {});
  // Moves the clock on and returns what it was: every snapshot taken before is at or below that, every later one above
  // (VACUUM's "that moment").
  Result<Cts> pass_moment();

  // --- forgetting what was rolled back (txn.forget-unnamed-ids): for the node's Sweeper -----------------------------
  // Ids of this node: up to here they have been assigned, or have no word any more.
  uint64_t assigned() const noexcept { return shared_.next.load(std::memory_order_acquire) - 1; }
  uint64_t frozen() const noexcept { return shared_.frozen.load(std::memory_order_acquire); }
  // Moves the marks on, as tick() does when that is worth it.
  Status truncate_log_now() { return truncate_log(); }
  // Pages of this node's list of aborted ids.
  Result<uint64_t> aborted_pages();
  // REQUIRES: frozen, of this node, and aborted_pages() was called since.
  Result<bool> was_rolled_back(TxnId id);
  // REQUIRES: no page and no session names an aborted id up to `upto`.  They count as committed from now on, and pages
  // that list no others are given back.  After kInterrupted, call again.
  Status forget_aborted(uint64_t upto);

  // --- session locks ------------------------------------------------------------------------------------------------
  // One at a time per session, held until it is released, at the latest when the session ends; two batches.
  Result<SessionLock> take_session_lock();
  void release_session_lock() noexcept;
  Result<bool> is_held(SessionLock lock);
  // Takes a lock and writes it to the page, at `offset`, unless the one there is held: then false, and no lock is
  // taken. kNotFound: the page is of another type.
  Result<bool> take_session_lock_on(PageId page, bufmgr::PageType type, uint32_t offset);

  // --- speculations -------------------------------------------------------------------------------------------------
  // The row that this level has just inserted may be taken back until end_speculation(), at the latest until the level
  // ends.  `host_lock`: what sessions of this node wait for (Waiter), held by the host meanwhile.  REQUIRES: no index
  // entry leads to the row yet.
  Status speculate(uint64_t row, uint64_t host_lock);
  // The row is kept, or was taken back; sessions that wait for that read it again.
  void end_speculation() noexcept;
  // Whether the running maker of the row may still take it back.  If not, the row is to be read again before anything
  // is concluded from it (txn.speculation-names-row).
  Result<std::optional<Speculation>> speculation(TxnId maker, uint64_t row);
  Result<bool> open(const Speculation& which);
  // As watch() of a transaction: registers to be woken; false: it is over already.
  Result<bool> watch(const Speculation& which);
  // The host's name of a speculation on THIS node; 0: it is over.
  Result<uint64_t> host_lock_of(const Speculation& which);

  // --- waiting ------------------------------------------------------------------------------------------------------
  // Registers this node to be woken when the transaction of `id` ends, or rolls back to a savepoint; false: the
  // transaction has ended, or `id` was rolled back, already.  Wakeups may be spurious: ask status() again, and watch()
  // again if it still runs.
  Result<bool> watch(TxnId id);
  // Whether another node waits for the transaction that `session` of this node runs, or a former one of it.
  Result<bool> watched(SessionId session);
  // The same for its holds on pages, which its node may be asked to give up: false: it has ended, or has none any more.
  Result<bool> want_holds(TxnId id);
  // What other sessions want of the node's: by session, up to `count` (serializable.want-then-look).
  Status wanted_holds(NodeId of, uint32_t count, HoldWord* to);
  // Whether somebody waits for the holds of a transaction that runs on one of the nodes: a hint, as Holder::wanted().
  Result<bool> holds_are_wanted(NodeSet on);
  // The holds of the transaction, of a session of this node, are gone: the nodes that wait for them are woken.
  Status tell_given_up(SessionId session, TxnId id);
  // What to wait for on THIS node: the host's number of the savepoint `id` while that may be rolled back alone, else of
  // the transaction with that top id; 0: it is not running here (any more).
  uint32_t host_xid_of(TxnId id, TxnId top) const noexcept;

  BufferPool& pool() { return pool_; }
  Session& session() { return session_; }
  Waiter& waiter() { return waiter_; }
  NodeId node() const { return node_; }
  const TxnWords& words() const { return words_; }
  // Whether the node takes no part, as of the last tick.
  bool away(NodeId node) const noexcept;

 private:
  struct Committing {
    Cts cts;
    uint64_t watch;  // the nodes that wait for the end
  };
  Result<Committing> start_commit();
  Result<Cts> finish_commit(const Committing& committing);
  StatusWord running_word() const noexcept;
  Status run(coherence::Batch& batch);            // log.ring-before-words
  Status run_unordered(coherence::Batch& batch);  // its words lead to no page
  Status publish_prepared(uint64_t host_xid);
  Result<TxnId> take_sequence_ahead();
  void wait_given_back() noexcept;
  Result<bool> write_session_lock(SessionLock mine, PageId page, bufmgr::PageType type, uint32_t offset);
  Result<TxnId> assign(TxnId parent);  // invalid: a top
  Result<TxnId> take_sequence();
  Result<bool> skipped(TxnId id, StatusWord found);
  void list_level(int level) noexcept;
  void end_unlisted() noexcept;  // but for levels that the slot cannot list
  void close_level(int level) noexcept;
  Status clear_words(uint64_t first, uint64_t count);
  // What the node has found out when it published its bound.
  struct Bounds {
    uint64_t clock, own;
    NodeSet sleepers;
    uint64_t of[coherence::kNodesMax];  // 0: the node does not count
    // Those that count with less than `least`.
    NodeSet below(uint64_t least) const noexcept;
  };
  // `clock_before`: what the clock was, or 0.
  Result<Bounds> publish_bound(uint64_t clock_before = 0);
  void rouse() noexcept;  // the member worker of this node
  Status extend_reserved();
  Status read_log(uint64_t first, uint64_t count, StatusWord* to);
  Status truncate_log();
  Status freeze();
  Status move_to_overflow();
  Status unpin_ended();
  Status unpin_leftovers(uint64_t frozen, uint64_t low);
  Status sort_out(uint64_t first, std::vector<StatusWord>& log, std::vector<uint64_t>& pinned);
  // By raw id: whether its transaction runs, in a session that is `unlisted`.
  using UnlistedOwners = std::unordered_map<uint64_t, bool>;
  Result<bool> may_change(TxnId sub, const OpenLevels& open, UnlistedOwners& owners);
  Result<bool> owned_by_unlisted(TxnId sub, const OpenLevels& open, UnlistedOwners& owners);
  void pin_in_ring(const std::vector<uint64_t>& sequences) noexcept;
  std::vector<uint64_t> pinned_sequences() const;
  Status unpin(uint64_t sequence, StatusWord word);
  Status write_overflow_word(uint64_t sequence, StatusWord word);
  Status read_words(uint64_t first, uint64_t count, StatusWord* to);
  Result<PageId> overflow_root();
  Result<uint64_t> load(coherence::PoolAddress word) { return pool_.memory(session_).load(word); }
  Result<PageId> overflow_page(uint64_t block);
  Result<PageId> make_overflow_page(uint64_t owner, uint64_t block);
  Status write_overflow(PageId page, uint64_t i, const void* words, uint64_t count);
  Status free_overflow(uint64_t from, uint64_t to);
  Result<bool> read_overflow(PageId page, uint64_t owner, uint64_t block, uint64_t i, uint64_t* to);
  Result<PageId> find_overflow(NodeId node, PageId root, uint64_t block);
  Result<std::optional<StatusWord>> overflow_word(TxnId id, PageId root);
  Status append_aborted(const std::vector<uint64_t>& sequences);
  Status load_aborted(NodeId node, uint64_t count);
  Result<StatusWord> read_word(TxnId id);
  Result<StatusWord> help_commit(TxnId id, StatusWord seen);
  Result<TxnStatus> inherit(TxnId id, TxnId at, StatusWord final_word);
  void end_transaction() noexcept;
  void finish_holder() noexcept;
  void finish_aborted(TxnId id, StatusWord from, TxnId parent) noexcept;
  void wake_watchers(SessionId session, uint64_t seen) noexcept;
  Status be_woken_by(NodeId node, SessionId session);
  Status read_own_speculation();
  void remember(TxnId id, StatusWord final_word);
  static TxnStatus status_of(StatusWord final_word);
  void note_commit();
  TxnSessionSlot& slot() const { return shared_.slot(session_.id().value); }
  friend class StatusBatch;
  bool found_running(TxnId id) const noexcept;

  struct Cached {
    uint64_t id = 0;
    StatusWord word{};
  };
  static constexpr uint32_t kCacheEntries = 512 * 8;
  // Ids that follow each other lie side by side: the versions of a hot row are made by such.
  static uint32_t cache_slot(TxnId id) {
    constexpr uint64_t kSpread = 0x9E3779B97F4A7C15ull;
    return uint32_t(((id.raw >> 3) * kSpread) >> 55 << 3 | (id.raw & 7));
  }

  // What this session knows of a node's ids that have no word any more.  The list itself is read where it lies
  // (txn.aborted-list-in-place).
  struct ListPage {
    uint64_t first = 0;  // sequence of its first entry
    PageId page;
    uint64_t number = 0;  // which one of the list it is, from the first that ever was
  };
  struct NodeView {
    uint64_t frozen = 0;
    uint64_t aborted = 0;         // entries there ever were in the list, as far as they count
    uint64_t swept = 0;           // aborted ids up to here are forgotten (txn.forget-unnamed-ids)
    std::vector<ListPage> pages;  // of the list, ascending
    const ListPage* page_for(uint64_t sequence) const;
  };
  std::optional<bool> listed_in(NodeId node, const ListPage& page, const bufmgr::OptimisticGuard& optimistic,
                                uint64_t sequence) const;
  Status read_list_page(NodeId node, const ListPage& at, ListPage* page, uint64_t* next);
  Status first_list_page(NodeId node, ListPage* page);
  void learn_swept(NodeId node, uint64_t swept);
  Result<bool> listed(NodeId node, uint64_t sequence);
  std::optional<bool> known_listed(NodeId node, uint64_t sequence) const;

  BufferPool& pool_;
  Session& session_;
  TxnShared& shared_;
  Waiter& waiter_;
  NodeWaker& waker_;
  NodeId node_;
  TxnWords words_;
  Transaction txn_;
  TxnId id_ahead_;                               // ACTIVE, in no row (txn.id-comes-along)
  std::optional<coherence::Batch> giving_back_;  // perhaps still on its way
  std::vector<Cached> cache_;
  std::vector<NodeView> nodes_;
  const std::vector<TxnId>* found_running_ = nullptr;  // by the StatusBatch that is there (txn.statuses-in-batch)
  uint64_t clock_at_tick_ = 0;
  uint64_t snapshot_taken_ = 0;  // the newest
  uint64_t deaths_view_ = 0;     // of the members, in which nothing was left to do for dead nodes
  std::optional<bool> asleep_;   // the member worker's process: whether the pool says so; nullopt: not known yet
  bool session_locked_ = false;
  bool speculation_known_ = false;
  int speculation_level_ = 0;      // the nesting level whose row may be taken back; 0: none
  SpeculationWord speculation_{};  // the session's word; REQUIRES: speculation_known_
};

}  // namespace engine

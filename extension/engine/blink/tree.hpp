// Tree: a Lehman-Yao B-link tree over the pool's pages, with PostgreSQL's index semantics and opaque keys.
//
//   auto tree = Tree::open(pool, session, meta);              // cheap; a process's handle, plain data
//   auto done = tree->insert(session, compare, search, key, tid);
//   Scan scan(*tree, session, compare);
//   scan.reset({.low = {.search = s, .complete = true}, .high = {.search = s, .complete = true}});
//   Entry entry;
//   for (auto more = scan.next(entry); more && *more; more = scan.next(entry)) use(entry);
//
// Entries are ordered by (key, tid); a pair (key, tid) is in the tree once.
//
// Rules: blink.compare-private-memory (an operation left by longjmp has changed nothing but, at most, completed or
// prepared splits), blink.nothing-half-done, blink.no-guard-after-call.
// blink.handle-one-thread: A handle is used by one thread; any number of handles, processes and nodes work on one tree.
// REQUIRES: a session that calls insert, check_unique, count or pages, or has a Scan that stands somewhere, counts for
// the Horizon from before the call until it (the scan) has ended (blink.free-when-unreachable).
#pragma once

#include <cstdint>
#include <span>

#include "bufmgr/buffer_pool.hpp"
#include "extension/engine/blink/entry.hpp"

namespace engine::blink {

using bufmgr::BufferPool;
using bufmgr::Intent;
using bufmgr::Session;
using coherence::Errc;
using coherence::PageId;
using coherence::Result;
using coherence::Status;

inline constexpr int kLevelsMax = 16;

enum class Unique : uint8_t {
  kNo,       // not a unique index, or the key has nulls (and they are distinct)
  kCheck,    // an entry that probes as kConflict stops the insert (PostgreSQL's UNIQUE_CHECK_YES)
  kPartial,  // it does not; the caller checks again later (UNIQUE_CHECK_PARTIAL)
};

// What the caller found behind an entry with an equal key.
enum class ProbeResult : uint8_t {
  kFree,      // dead, or the caller's own to ignore: go on
  kDead,      // as kFree; and no snapshot sees, or will see, a row by this entry (blink.dead-to-all): it may be erased
  kConflict,  // a live row
  kAgain,     // the caller waited for a transaction: begin anew
};

class UniqueProbe {
 public:
  virtual ~UniqueProbe() = default;
  // Called for each entry whose key equals the search key in all attributes, in order, on private memory, without
  // guards: may read the heap, wait, or leave by longjmp.  An error ends the insert with it.
  virtual Result<ProbeResult> probe(const Entry& entry) = 0;
};

// Says whether the row an entry leads to is dead to all (blink.dead-to-all).
class DeadJudge {
 public:
  virtual ~DeadJudge() = default;
  // As UniqueProbe::probe(): no guard is held; may read the heap or leave by longjmp.  An error ends the insert with
  // it.
  virtual Result<bool> dead_to_all(Tid tid) = 0;
};
struct DeadEntries;  // erase.hpp

struct InsertResult {
  bool inserted = false;
  bool unique = true;  // false: a conflict was met, at `conflict`
  Tid conflict;
};

class TidPredicate {
 public:
  virtual ~TidPredicate() = default;
  virtual bool operator()(Tid tid) = 0;  // no guard is held; must not leave by longjmp
};

struct RemoveResult {
  uint64_t removed = 0;
  uint64_t kept = 0;
  uint64_t leaves = 0;
  uint64_t deleted = 0;  // pages that left the tree; recycle() gives them back
  bool skipped = false;  // leaves that transactions hold: they may have entries still
};

// When a page that left the tree may be used again: when all sessions that counted then have ended
// (blink.free-when-unreachable).  Its clock is the host's.
class Horizon {
 public:
  virtual ~Horizon() = default;
  // Moves the clock on; sessions that count already do so with at most what is returned.
  virtual Result<uint64_t> pass_moment() = 0;
  // Sessions that count now or later do so with more than every moment below this.  The caller wants it above `wanted`:
  // what keeps it from there, and need not, is woken.
  virtual Result<uint64_t> now(uint64_t wanted) = 0;
};

struct RecycleResult {
  uint64_t freed = 0;
  uint64_t waiting = 0;  // pages that some session may still come to
};

struct Shape {
  uint32_t height = 0;  // levels above the leaves
  uint64_t pages = 0;   // estimated from one path
};

class Tree {
 public:
  // An empty tree: a meta page and a root, whose numbers never change.  Returns the meta page: the tree's name.
  static Result<PageId> create(BufferPool& pool, Session& session);
  // The same of a fresh page, which becomes the meta page.  After kInterrupted, call again.
  static Status create_at(BufferPool& pool, Session& session, PageId meta);
  // Reads the meta page.  kCorrupt if `meta` is not one.
  static Result<Tree> open(BufferPool& pool, Session& session, PageId meta);
  // Frees every page.  REQUIRES: no other session uses the tree, or will.  May be called again after kInterrupted.
  static Status drop(BufferPool& pool, Session& session, PageId meta);
  // The same in steps, also of a tree whose build was not finished, or that create_at() has not come to.  True: all is
  // gone, the meta page last and together with `last`.  After an error, or a crash, call again.
  static Result<bool> drop_some(BufferPool& pool, Session& session, PageId meta, bufmgr::SpaceNote* last = nullptr);

  // A handle on a tree that was opened before: reads nothing.  Both pages are the tree's for its life.
  static Tree opened(BufferPool& pool, PageId meta, PageId root) { return Tree(pool, meta, root); }

  // The same, with another fill of leaves: 10 .. 100 percent.
  Tree filled(uint32_t percent) const {
    Tree tree = *this;
    tree.fill_ = percent;
    return tree;
  }

  // The same; transactions that hold pages (bufmgr::Session::holding()) hold none of it, as Heap::set_holds().
  Tree unheld() const {
    Tree tree = *this;
    tree.held_ = false;
    return tree;
  }

  PageId meta() const { return meta_; }
  PageId root() const { return root_; }

  // Inserts (key, tid).  `search` is the comparator's search key for the same key, all key attributes given.
  // `probe` is needed unless `unique` is kNo.  kTooLarge: the key is longer than kKeyMax.
  //
  // Uniqueness is decided at one moment in the whole cluster: the entry goes in under the exclusive latch of the leaf
  // where the key's entries begin (the gate, the same page for every node), and only if that leaf shows that no entry
  // with this key came since the probes ran (README, "Unique").
  // `rows`, if given: a full leaf loses its dead entries before it is split.
  Result<InsertResult> insert(Session& session, Comparator& compare, const void* search, std::span<const std::byte> key,
                              Tid tid, Unique unique = Unique::kNo, UniqueProbe* probe = nullptr,
                              DeadJudge* rows = nullptr);

  // A scan has left a leaf in which it found these dead to all: they go if that is cheap.  Returns how many went.
  // REQUIRES: the caller has counted for the horizon since before the scan read the leaf (blink.eraser-counts).
  Result<uint32_t> forget(Session& session, DeadEntries& dead) const;

  // Probes all entries with this key and inserts nothing (UNIQUE_CHECK_EXISTING; the caller's probe ignores its own
  // tid).  `inserted` stays false.
  Result<InsertResult> check_unique(Session& session, Comparator& compare, const void* search, UniqueProbe& probe);

  // VACUUM: removes the entries whose tid `dead` accepts (and will accept until the call ends).  Every entry that was
  // there when the call began is judged, at least once.  Leaves that are empty leave the tree.  REQUIRES: no other
  // session calls this or recycle() for the tree at the time.
  Result<RemoveResult> remove_if(Session& session, TidPredicate& dead);
  // Gives pages that left the tree back to the pool, as far as the horizon has passed.  REQUIRES: as remove_if().
  Result<RecycleResult> recycle(Session& session, Horizon& horizon);

  Result<uint64_t> count(Session& session);  // of all entries; reads every leaf
  Result<uint64_t> pages(Session& session);  // all there are; reads every page above the leaves
  Result<Shape> shape(Session& session);     // for the planner; reads one page a level

 private:
  friend class Scan;
  friend class Builder;
  friend class Checker;
  Tree(BufferPool& pool, PageId meta, PageId root) : pool_(&pool), meta_(meta), root_(root) {}

  BufferPool* pool_;
  PageId meta_;
  PageId root_;
  uint32_t fill_ = kFillLeaf;
  bool held_ = true;
};

}  // namespace engine::blink

// EvictionWindow: pages leave their frames in batches, of which a few are under way at a time.
//
// eviction.grouped-by-node: a batch goes to one memory node (transport.batch-in-order), so the lines that add() is
// given are grouped by memory node.
// eviction.few-under-way: at most kBatches are under way.  A session that needs one more waits until any of them is
// complete.
// eviction.waits-for-batches: between its first add() and finish() the evictor waits for nothing but batches, and a
// batch waits for no process.  So a wait for a latch in the window lasts a round trip or two, and no wait goes in a
// circle.  The taker's short locks are no exception: their holder latches lines without a page at most, and those in
// the window have theirs.
//
// Each line is latched from add() until its own batch is complete (eviction.latched-until-complete), and is the taker's
// then (eviction.taker-per-batch).
//
// Used by the session's thread.  Allocates nothing: some 14 KB, of which what is used is touched, on its stack.
//
//   EvictionWindow window(session, taker);
//   window.add(lines, pages, count);  // as often as there are victims
//   window.finish();                  // or the destructor
#pragma once

#include <cstdint>

#include "coherence/base/ids.hpp"
#include "coherence/transport/memory.hpp"
#include "coherence/transport/under_way.hpp"

namespace coherence {

class Line;
class Session;
class Evictor;

// Gets what has been evicted.
class FrameTaker {
 public:
  virtual ~FrameTaker() = default;
  // The node has given up `page`, no session can fetch it anew, `line` is latched for Session::finish_evict():
  // unpublish, then finish.  Waits for no latch, adds nothing to the window.
  virtual void take(Line& line, PageId page) noexcept = 0;
};

class EvictionWindow {
 public:
  // So many hide a round trip behind the preparation of others (paper.background-eviction), are at most 256
  // operations of a connection's queue, and few enough for a stack.
  static constexpr int kBatches = 4;

  // Both outlive it.
  EvictionWindow(Session& session, FrameTaker& taker) noexcept;
  ~EvictionWindow() { finish(); }
  EvictionWindow(const EvictionWindow&) = delete;

  // Begins the eviction of those that are not busy (Session::try_evict()), and posts their batches; returns how many.
  // Of them the taker has got those whose batches are complete; it gets each of the others, unless the node is cut off.
  int add(Line* const* lines, const PageId* pages, int count) noexcept;
  // Ends what is complete; never waits.
  void reap() noexcept;
  // Ends everything.
  void finish() noexcept;
  // Lines that the taker will get.
  int under_way() const noexcept { return lines_; }

 private:
  static constexpr int kLinesMax = 16;  // of a batch
  struct Group {
    explicit Group(MemoryNodeId to) : batch(to) {}
    Batch batch;
    int size = 0;
    struct {
      Line* line;
      int atomic;
    } member[kLinesMax];  // [0, size) are set
  };

  int add_of(MemoryNodeId to, Line* const* lines, const PageId* pages, int count) noexcept;
  void wait_for_room() noexcept;
  void post(int place) noexcept;
  void end(int place) noexcept;

  Evictor& evictor_;
  FrameTaker& taker_;
  int lines_ = 0;
  UnderWay<Group, kBatches> groups_;
};

}  // namespace coherence

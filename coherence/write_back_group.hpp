// WriteBackGroup: changes of several pages go to the pool in one batch, and the pages stay where they are.
//
// coherence.group-waits-for-batches: From add() to run() each line is latched shared.  Meanwhile its session waits for
//     nothing but the batch, which waits for no process: so a wait for one of the latches lasts as long as a round
//     trip.
//
// Used by the session's thread.  Allocates nothing.
//
//   WriteBackGroup group(session);
//   if (!group.room_for(page)) group.run(ended);
//   const auto added = group.add(line, page);   // as often as there are pages
//   group.run([&](int i, bool written) { ... });  // of the line that was added as number i
#pragma once

#include <cstdint>
#include <optional>

#include "coherence/base/ids.hpp"
#include "coherence/base/result.hpp"
#include "coherence/transport/memory.hpp"

namespace coherence {

class Line;
class Session;

class WriteBackGroup {
 public:
  static constexpr int kLinesMax = 16;

  explicit WriteBackGroup(Session& session) noexcept : session_(session) {}  // outlives it
  ~WriteBackGroup();                                                         // REQUIRES: it is empty
  WriteBackGroup(const WriteBackGroup&) = delete;

  int size() const noexcept { return size_; }
  // A batch is for one memory node (transport.batch-in-order).
  bool room_for(PageId page) const noexcept;
  // Whether it is in the group now; false: there is nothing to write of it.  kWouldBlock: latched exclusively, being
  // written, or changed beyond the log horizon; kRestart: it is another page's; kFenced.  REQUIRES: room_for(page).
  Result<bool> add(Line& line, PageId page) noexcept;
  // Calls ended(number, written) for each, in order; the group is empty then.
  template <class Ended>
  void run(const Ended& ended) {
    if (size_ == 0) return;
    const bool written = write();
    const int count = size_;
    size_ = 0;
    batch_.reset();
    for (int i = 0; i < count; i++) ended(i, written);
  }

 private:
  bool write() noexcept;
  Session& session_;
  std::optional<Batch> batch_;
  int size_ = 0;
  Line* line_[kLinesMax];  // [0, size_) are set
};

}  // namespace coherence

// A node's orderly end: Node::leave(), by the session that is left.
#include "coherence/base/os.hpp"
#include "coherence/eviction_window.hpp"
#include "coherence/session.hpp"

namespace coherence {
namespace {

constexpr uint64_t kLeaveNs = 20'000'000'000;
constexpr uint32_t kLinesAtOnce = 32;  // are given back between two looks at what peers ask

}  // namespace

// Returns how many pages are busy; answers peers meanwhile (node.leaver-answers).
uint32_t Node::give_back(Session& session) {
  struct Taker final : FrameTaker {
    explicit Taker(Session& s) : session(s) {}
    void take(Line& line, PageId) noexcept override { session.finish_evict(line); }
    Session& session;
  } taker(session);
  uint32_t busy = 0;
  for (uint32_t next = 0; next < frames();) {
    Line* lines[kLinesAtOnce];
    PageId pages[kLinesAtOnce];
    uint32_t count = 0;
    for (; next < frames() && count < kLinesAtOnce; next++) {
      pages[count] = line(next).page();
      lines[count] = &line(next);
      count += pages[count].valid();
    }
    {
      EvictionWindow window(session, taker);
      busy += count - uint32_t(window.add(lines, pages, int(count)));
    }
    session.attend();
  }
  return busy;
}

Status Node::leave(Session& session, bool* last, Problem* problem, DeathRecorder* recorder) {
  members_->begin_leaving();
  uint64_t deadline = monotonic_ns() + kLeaveNs;
  for (;;) {
    uint32_t busy = give_back(session), slots = 0;
    for (uint32_t i = 0; i < parts_.sessions_max * kSlotsPerSession; i++) {
      SlotState s = parts_.slot(uint16_t(i)).state.load();
      slots += s != SlotState::kFree;
    }
    if (!busy && !slots) break;
    if (recorder != nullptr && !unrecorded().empty()) recorder->record();  // node.leaver-records
    Status ok = session.serve(busy ? 1 : 10);
    if (!ok) return problem->set(ok.error(), "%s", fence_reason());
    if (monotonic_ns() > deadline)
      return problem->set(Errc::kBusy, "%u pages are still latched, %u operations still wait", busy, slots);
  }
  // A joining node makes its arena meanwhile, perhaps for long.
  for (Status free; !(free = members_->begin_change(Membership::Patience::kTry, problem)).ok();) {
    if (free.error() != Errc::kBusy || monotonic_ns() > deadline) return free;
    Status ok = session.serve(1);
    if (!ok) return problem->set(ok.error(), "%s", fence_reason());
  }
  session.attend();
  session.flush_messages();  // a node counts as gone when it has withdrawn
  Status withdrawn = withdraw(last, problem);
  members_->end_change();
  if (left_) give_memory_back(arena_fd_, parts_.arena->layout.shared_until(), parts_.arena->layout.private_at);
  return withdrawn;
}

}  // namespace coherence

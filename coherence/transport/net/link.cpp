#include "coherence/transport/net/link.hpp"

#include <algorithm>
#include <cstring>
#include <new>

#include "coherence/base/verify.hpp"
#include "coherence/transport/net/quoted.hpp"

namespace coherence::net {

Link::Link(const Spec& spec, bool dials, uint64_t now) noexcept : spec_(spec), dials_(dials), since_(now) {
  reason_.write("it was never connected");
}

std::unique_ptr<Link> Link::dialing(const Spec& spec, uint64_t now) noexcept {
  std::unique_ptr<Link> link(new (std::nothrow) Link(spec, true, now));
  return link && link->open() ? std::move(link) : nullptr;
}

std::unique_ptr<Link> Link::accepting(const Spec& spec, uint64_t now) noexcept {
  std::unique_ptr<Link> link(new (std::nothrow) Link(spec, false, now));
  return link && link->open() ? std::move(link) : nullptr;
}

// Bytes that are never used are never touched.
bool Link::open() noexcept {
  input_.reset(new (std::nothrow) std::byte[kInputBytes]);
  return input_ && window_.open(spec_.window);
}

Status Link::send(uint16_t type, std::span<const Piece> pieces) noexcept {
  VERIFY(type <= kTypeMax);
  if (over()) return Errc::kNotFound;
  size_t payload = 0;
  for (const Piece& piece : pieces) payload += piece.size();
  if (payload > kPayloadMax || frame_bytes(uint32_t(payload)) > spec_.window) return Errc::kTooLarge;
  if (!window_.room_for(payload)) {
    no_room_ = true;
    return Errc::kNoSpace;
  }
  window_.queue(type, pieces, uint32_t(payload), received_);
  acknowledged_all();
  return {};
}

// --- connections

void Link::attach(uint64_t now) noexcept {
  VERIFY(dials_ && !attached() && !over());
  const Hello hello{spec_.self, spec_.peer, spec_.cluster, spec_.id, received_, spec_.window, known_};
  write_hello(hello, std::span(control_).first<kHelloBytes>());
  control_end_ = kHelloBytes;
  phase_ = Phase::kGreeting;
  heard_ = now;
}

bool Link::attach(const Hello& hello, uint64_t now) noexcept {
  VERIFY(!dials_ && !attached() && !over());
  if (!window_.rewind(hello.received)) {
    finish(Ending::kBroken, "it says that it has received what was never sent, or denies what it acknowledged");
    return false;
  }
  const Welcome welcome{Refusal::kNone, spec_.self, spec_.id, received_, spec_.window};
  write_welcome(welcome, std::span(control_).first<kWelcomeBytes>());
  control_end_ = kWelcomeBytes;
  peer_window_ = hello.window;
  begin(now);
  return true;
}

void Link::begin(uint64_t now) noexcept {
  phase_ = Phase::kFrames;
  known_ = true;
  heard_ = now;
  asked_ = heard_frames_ = false;
  acknowledged_all();  // the greeting says it
  if (no_room_) room_made_ = true;
}

void Link::detach(const char* why, uint64_t now) noexcept {
  if (phase_ == Phase::kFrames && heard_frames_) since_ = now;
  phase_ = Phase::kDetached;
  in_begin_ = in_end_ = 0;
  control_at_ = control_end_ = 0;
  acknowledge_ = ask_ = asked_ = false;
  acknowledge_at_ = kNever;
  if (!over()) reason_.write("%s", why);
}

void Link::finish(Ending ending, const char* reason) noexcept {
  if (over()) return;
  ending_ = ending;
  reason_.write("%s", reason);
  // Behind a greeting too: or the other side would keep a link that nobody comes back to.
  const bool greeted = phase_ == Phase::kGreeting && control_at_ > 0 && ending == Ending::kEndedHere;
  if ((phase_ == Phase::kFrames && ending != Ending::kEndedByPeer) || greeted)
    put_control(kEndFrame, reason);
  else if (phase_ == Phase::kGreeting)
    control_at_ = control_end_ = 0;
}

void Link::broken(const Problem& what) noexcept {
  Problem text;
  text.write("%s broke the format: %.300s", spec_.peer.name().text, what.text);
  finish(Ending::kBroken, text.text);
}

}  // namespace coherence::net

// What a link makes of the bytes of its connection, and the bytes that it makes.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include "coherence/base/verify.hpp"
#include "coherence/transport/net/link.hpp"
#include "coherence/transport/net/quoted.hpp"

namespace coherence::net {

// --- what comes

// Frames are multiples of 8 long, and so is what is before them: moved to the front, they stay aligned.
std::span<std::byte> Link::input() noexcept {
  VERIFY(attached() && !over());
  if (in_begin_ > 0 && kInputBytes - in_end_ < kReadMin) {
    memmove(input_.get(), input_.get() + in_begin_, waiting());
    in_end_ -= in_begin_;
    in_begin_ = 0;
  }
  return {input_.get() + in_end_, kInputBytes - in_end_};
}

void Link::received(size_t bytes, uint64_t now, FrameSink& sink) noexcept {
  VERIFY(attached() && !over() && bytes <= kInputBytes - in_end_);
  in_end_ += bytes;
  heard_ = now;
  asked_ = false;
  if (phase_ == Phase::kGreeting && greet(now)) sink.greeted(*this);
  if (connected()) frames(now, sink);
  if (in_begin_ == in_end_) in_begin_ = in_end_ = 0;
}

// True: the link is connected now.
bool Link::greet(uint64_t now) noexcept {
  if (waiting() < kWelcomeBytes) return false;
  Welcome welcome;
  Problem problem;
  const std::span<const std::byte, kWelcomeBytes> bytes(input_.get() + in_begin_, kWelcomeBytes);
  const Status read = read_welcome(bytes, &welcome, &problem);
  in_begin_ += kWelcomeBytes;
  Who& peer = spec_.peer;
  if (!read) {
    broken(problem);
  } else if (welcome.refusal != Refusal::kNone) {
    problem.write("%s refuses the link: %s", peer.name().text, Quoted(welcome.reason).text);
    if (welcome.refusal == Refusal::kFull)
      detach(problem.text, now);
    else
      finish(Ending::kRefused, problem.text);
  } else if (!welcome.from.same_place(peer) || welcome.link != spec_.id) {
    problem.write("it says that it is %s, and speaks of another link", welcome.from.name().text);
    broken(problem);
  } else if (peer.start != 0 && peer.start != welcome.from.start) {
    problem.write("%s has started anew (start %llu)", peer.name().text,
                  static_cast<unsigned long long>(welcome.from.start));
    finish(Ending::kRefused, problem.text);
  } else if (!window_.rewind(welcome.received)) {
    problem.write("it says that it has received what was never sent, or denies what it acknowledged");
    broken(problem);
  } else {
    peer = welcome.from;
    peer_window_ = welcome.window;
    begin(now);
  }
  return connected();
}

void Link::frames(uint64_t now, FrameSink& sink) noexcept {
  while (waiting() >= sizeof(FrameHeader)) {
    FrameHeader header;
    memcpy(&header, input_.get() + in_begin_, sizeof header);
    Problem problem;
    if (!check_header(header, &problem)) return broken(problem);  // net.length-first
    const uint32_t bytes = frame_bytes(header.length);
    if (waiting() < bytes) return;
    const Piece payload(input_.get() + in_begin_ + sizeof header, header.length);
    in_begin_ += bytes;
    if (!take_frame(header, payload, now, sink)) return;
  }
}

// False: the link is over.
bool Link::take_frame(const FrameHeader& header, Piece payload, uint64_t now, FrameSink& sink) noexcept {
  heard_frames_ = true;
  Problem problem;
  const uint64_t room = window_.room();
  if (!window_.acknowledge(header.ack)) {
    problem.write("it acknowledges frame %llu, which was not sent", static_cast<unsigned long long>(header.ack));
    broken(problem);
    return false;
  }
  if (no_room_ && window_.room() > room) room_made_ = true;
  if (header.type == kEndFrame) {
    problem.write("%s ended the link: %s", spec_.peer.name().text,
                  Quoted({reinterpret_cast<const char*>(payload.data()), payload.size()}).text);
    finish(Ending::kEndedByPeer, problem.text);
  } else if (header.number > received_ + 1) {
    problem.write("frame %llu follows frame %llu", static_cast<unsigned long long>(header.number),
                  static_cast<unsigned long long>(received_));
    broken(problem);
  } else if (header.type == kPingFrame || (header.type != kAckFrame && header.number <= received_)) {
    acknowledge_ = true;  // what was there already is dropped (tcp.exactly-once), and its sender is told so
  } else if (header.type != kAckFrame) {
    received_ = header.number;
    owe_acknowledgement(frame_bytes(header.length), now);
    sink.frame(*this, header.type, payload);
  }
  return !over();
}

// At once after a good part of the other side's window, so that it never stands still for want of one.
void Link::owe_acknowledgement(uint32_t bytes, uint64_t now) noexcept {
  owed_ += std::min(bytes, ~uint32_t{0} - owed_);
  if (owed_ >= peer_window_ / 4) acknowledge_ = true;
  if (acknowledge_at_ == kNever) acknowledge_at_ = now + spec_.times.acknowledge_ns;
}

// What is queued now says all that was received.
void Link::acknowledged_all() noexcept {
  owed_ = 0;
  acknowledge_ = false;
  acknowledge_at_ = kNever;
}

// --- what goes

bool Link::has_output() const noexcept {
  if (over()) return control_left() || (phase_ == Phase::kFrames && !window_.between_frames());
  return control_left() || (phase_ == Phase::kFrames && (window_.unsent() || acknowledge_ || ask_));
}

// The link's own go first, but never into the middle of a frame that is sent in part.
int Link::output(iovec (&pieces)[kOutputPieces]) noexcept {
  int count = 0;
  const bool framing = phase_ == Phase::kFrames;
  if (framing && !over()) prepare_control();
  if (framing && !window_.between_frames()) {
    count = window_.rest_of_frame(pieces);
    if (!control_left() && !over()) return window_.unsent(pieces);
  }
  if (control_left()) pieces[count++] = {control_ + control_at_, size_t(control_end_ - control_at_)};
  if (framing && count == int(control_left()) && !over()) count += window_.unsent(pieces + count);
  return count;
}

void Link::prepare_control() noexcept {
  if (control_left()) return;
  control_at_ = control_end_ = 0;
  if (ask_) put_control(kPingFrame, "");
  if (acknowledge_) put_control(kAckFrame, "");
  ask_ = false;
  if (acknowledge_) acknowledged_all();
}

void Link::put_control(uint16_t type, const char* text) noexcept {
  const uint32_t length = uint32_t(strnlen(text, kReasonMax));
  const FrameHeader header{length, type, 0, 0, received_};
  VERIFY(control_end_ + frame_bytes(length) <= kControlBytes);
  memset(control_ + control_end_, 0, frame_bytes(length));
  memcpy(control_ + control_end_, &header, sizeof header);
  memcpy(control_ + control_end_ + sizeof header, text, length);
  control_end_ += frame_bytes(length);
}

void Link::sent(size_t bytes) noexcept {
  if (phase_ == Phase::kFrames && !window_.between_frames()) {
    iovec rest[2];
    size_t left = 0;
    for (int i = window_.rest_of_frame(rest); i > 0; i--) left += rest[i - 1].iov_len;
    const size_t now = std::min(bytes, left);
    window_.sent(now);
    bytes -= now;
  }
  const size_t control = std::min<size_t>(bytes, control_end_ - control_at_);
  control_at_ += uint32_t(control);
  if (bytes > control) window_.sent(bytes - control);
}

// --- time

uint64_t Link::deadline() const noexcept {
  if (over()) return kNever;
  const uint64_t patience = since_ + spec_.times.patience_ns;
  if (phase_ != Phase::kFrames) return patience;
  const uint64_t silence = spec_.times.silence_ns;
  return std::min(acknowledge_at_, heard_ + (asked_ ? silence : silence / 3));
}

void Link::tick(uint64_t now) noexcept {
  if (over() || now < deadline()) return;
  Problem problem;
  if (phase_ != Phase::kFrames) {
    problem.write("no connection with %s for %.1f s: %.300s", spec_.peer.name().text, double(now - since_) / 1e9,
                  reason_.text);
    return finish(Ending::kPatience, problem.text);
  }
  if (now >= acknowledge_at_) {
    acknowledge_ = true;
    acknowledge_at_ = kNever;
  }
  if (now >= heard_ + spec_.times.silence_ns) {
    problem.write("nothing was heard of it for %.1f s", double(now - heard_) / 1e9);
    return detach(problem.text, now);
  }
  if (!asked_ && now >= heard_ + spec_.times.silence_ns / 3) ask_ = asked_ = true;
}

bool Link::take_room_made() noexcept {
  if (!room_made_) return false;
  room_made_ = no_room_ = false;
  return true;
}

}  // namespace coherence::net

// Link: frames to and from one peer, in order and each exactly once, over connections that break and are replaced
// (tcp.exactly-once).  A pure state machine: bytes in, frames out, and "now" is a parameter; `links.hpp` has the
// sockets.
//
// net.frames-numbered: Each side numbers its frames 1, 2, 3, ...  Every frame says the number of the last one that its
// sender has received; where nothing is sent for a while, an acknowledgement is sent alone.
// net.kept-until-acknowledged: A frame lies in its sender's window, as the bytes that are sent, until it is
// acknowledged.  When a connection is replaced both sides say what they have received, and go on behind it.
// net.acknowledged-means-delivered: What is acknowledged was given to the user of the other side, whole, once.
// net.one-link-per-start: A peer has one link for each of its starts (`Who`), but tools, which have any number.  When
// it is over, the same start gets no other, unless this side lets it (Links::Spec::again), and then one that has no
// connection is over when another one comes.  A link of a newer start ends that of an older one.  Of memory nodes,
// whose starts are times of a clock that may be set back, any other start ends a link that has no connection.
// net.silence-breaks: A connection on which nothing arrives for a while (the other side is asked to say something
// meanwhile) is given up like one that broke.
// net.patience: A link without a connection for as long as its patience is over.  A connection over which nothing came
// behind the greeting counts as none: a path may let pass what is short, and nothing else.
//
// Credit: every frame of a peer comes with what it had received when it *queued* it.  So a side that sends requests
// and counts, when it queues one, at most `peer_window()` bytes of answers (frame_bytes() of each) as outstanding,
// knows that the other side has room for every answer, without waiting.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "coherence/base/problem.hpp"
#include "coherence/base/result.hpp"
#include "coherence/transport/net/frame.hpp"
#include "coherence/transport/net/hello.hpp"
#include "coherence/transport/net/send_window.hpp"
#include "coherence/transport/net/who.hpp"

namespace coherence::net {

class Link;

// Why a link is over.
enum class Ending : uint8_t {
  kOpen,         // it is not
  kEndedHere,    // end()
  kEndedByPeer,  // the same, over there
  kRefused,      // the other side did not begin it, or does not know it any more
  kPatience,     // no connection for too long
  kBroken,       // the other side broke the format
  kReplaced,     // a newer start of the peer has come
};

// The receiver of a link's frames.
class FrameSink {
 public:
  // `payload` is valid during the call, and aligned to 8 bytes.  send() and end() are allowed inside, on every link.
  virtual void frame(Link&, uint16_t type, std::span<const std::byte> payload) = 0;
  virtual void greeted(Link&) {}  // a connection that was dialed is the link's now; before its first frame

 protected:
  ~FrameSink() = default;
};

struct LinkTimes {
  uint64_t patience_ns = 60'000'000'000;  // net.patience
  uint64_t silence_ns = 10'000'000'000;   // net.silence-breaks; it asks after a third of it
  uint64_t acknowledge_ns = 10'000'000;   // alone, when no frame has carried it
};

class Link {
 public:
  using Piece = std::span<const std::byte>;

  // --- for its user

  // Queues a frame; its bytes are copied once.  Works without a connection too.  kNoSpace: the window has no room, and
  // LinksUser::room() is called when it may have again; kTooLarge: more than kPayloadMax, or than a window; kNotFound:
  // the link is over. REQUIRES: type <= kTypeMax.
  Status send(uint16_t type, std::span<const Piece> pieces) noexcept;
  Status send(uint16_t type, Piece payload) noexcept { return send(type, std::span(&payload, 1)); }
  // Whether a frame with so much payload could be queued now.
  bool room_for(size_t payload) const noexcept { return !over() && window_.room_for(payload); }
  bool all_acknowledged() const noexcept { return window_.empty(); }
  // Numbers of frames: the last that send() has queued; all up to this one are acknowledged.
  uint64_t last_queued() const noexcept { return window_.last_queued(); }
  uint64_t last_acknowledged() const noexcept { return window_.last_acknowledged(); }
  bool acknowledged(uint64_t number) const noexcept { return number <= last_acknowledged(); }
  uint32_t peer_window() const noexcept { return peer_window_; }  // bytes; 0: never connected yet

  const Who& self() const noexcept { return spec_.self; }
  const Who& peer() const noexcept { return spec_.peer; }  // start 0: any, and never connected yet
  uint64_t id() const noexcept { return spec_.id; }
  bool connected() const noexcept { return phase_ == Phase::kFrames && !over(); }
  bool over() const noexcept { return ending_ != Ending::kOpen; }
  Ending ending() const noexcept { return ending_; }
  const char* reason() const noexcept { return reason_.text; }  // why it is over, or not connected; safe to log
  // Ends it; the other side is told the reason if there is a connection.  What is not acknowledged may or may not have
  // arrived.
  void end(const char* reason) noexcept { finish(Ending::kEndedHere, reason); }

  void* context = nullptr;  // the user's

  // --- for the loop that has the sockets

  struct Spec {
    Who self, peer;  // peer.start 0: any
    uint64_t cluster = 0;
    uint64_t id = 0;
    uint32_t window = 0;  // REQUIRES: SendWindow::fits()
    LinkTimes times = {};
  };
  // Null: no memory.
  static std::unique_ptr<Link> dialing(const Spec&, uint64_t now) noexcept;
  static std::unique_ptr<Link> accepting(const Spec&, uint64_t now) noexcept;
  Link(const Link&) = delete;

  // There is a connection that was dialed: the greetings come next.
  void attach(uint64_t now) noexcept;
  // There is one that was accepted, with this greeting about this link.  False: the link is over, as the two sides do
  // not agree about what arrived.
  bool attach(const Hello& hello, uint64_t now) noexcept;
  // The greeting is of a connection that the other side has given up: it has acknowledged more since, over another one.
  bool is_late(const Hello& hello) const noexcept { return hello.received < last_acknowledged(); }
  // The connection is gone.
  void detach(const char* why, uint64_t now) noexcept;
  bool attached() const noexcept { return phase_ != Phase::kDetached; }

  // Where the next bytes of the connection go; not empty.  REQUIRES: attached, not over.
  std::span<std::byte> input() noexcept;
  // So many bytes were put there.  Delivers what is complete.  Afterwards the link may be over, or not attached any
  // more.
  void received(size_t bytes, uint64_t now, FrameSink&) noexcept;

  // What is to be sent, in pieces; how many.  0: nothing at the moment.
  static constexpr int kOutputPieces = 4;
  int output(iovec (&pieces)[kOutputPieces]) noexcept;
  bool has_output() const noexcept;
  // REQUIRES: no more than output() said, and nothing else happened since.
  void sent(size_t bytes) noexcept;

  // When to call tick() at the latest.
  uint64_t deadline() const noexcept;
  // What time brings: an acknowledgement alone, a question to a silent peer; the end of a connection, which is no
  // longer attached then; the link's end.
  void tick(uint64_t now) noexcept;
  // A newer start of the peer is here.
  void replace(const char* reason) noexcept { finish(Ending::kReplaced, reason); }
  // Once after a send() that had no room: whether some was made since.
  bool take_room_made() noexcept;

 private:
  enum class Phase : uint8_t { kDetached, kGreeting, kFrames };
  static constexpr uint64_t kNever = ~uint64_t{0};
  static constexpr size_t kReadMin = 16 * 1024;
  static constexpr size_t kInputBytes = kFrameMax + 8 * kReadMin;
  // What is there is a greeting or two short frames; behind it, there is room for the link's last frame.
  static constexpr size_t kControlBytes = kWelcomeBytes + frame_bytes(kReasonMax);
  static_assert(kWelcomeBytes >= kHelloBytes && kWelcomeBytes >= 2 * frame_bytes(0));

  explicit Link(const Spec& spec, bool dials, uint64_t now) noexcept;
  bool open() noexcept;
  void begin(uint64_t now) noexcept;
  void finish(Ending, const char* reason) noexcept;
  void broken(const Problem& what) noexcept;

  bool greet(uint64_t now) noexcept;
  void frames(uint64_t now, FrameSink&) noexcept;
  bool take_frame(const FrameHeader&, Piece payload, uint64_t now, FrameSink&) noexcept;
  void owe_acknowledgement(uint32_t bytes, uint64_t now) noexcept;
  void acknowledged_all() noexcept;

  size_t waiting() const noexcept { return in_end_ - in_begin_; }
  bool control_left() const noexcept { return control_at_ != control_end_; }
  void prepare_control() noexcept;
  void put_control(uint16_t type, const char* text) noexcept;

  Spec spec_;
  const bool dials_;
  bool known_ = false;  // to the other side: it was connected
  Phase phase_ = Phase::kDetached;
  Ending ending_ = Ending::kOpen;
  bool no_room_ = false, room_made_ = false;
  uint32_t peer_window_ = 0;
  Problem reason_;

  SendWindow window_;
  uint64_t received_ = 0;  // number of the last frame that was delivered
  uint32_t owed_ = 0;      // bytes delivered since the other side was told so
  uint64_t acknowledge_at_ = kNever;
  bool acknowledge_ = false, ask_ = false;  // alone, as soon as possible
  bool asked_ = false;                      // since heard_
  uint64_t heard_ = 0;                      // when the last bytes came
  uint64_t since_;                          // when it had a connection last (net.patience)
  bool heard_frames_ = false;               // over this connection

  std::unique_ptr<std::byte[]> input_;
  size_t in_begin_ = 0, in_end_ = 0;
  alignas(8) std::byte control_[kControlBytes];  // greetings, and the link's own frames
  uint32_t control_at_ = 0, control_end_ = 0;
};

}  // namespace coherence::net

// Link: frames to and from one peer, in order and each exactly once, over connections that break and are replaced
// (tcp.exactly-once).  A pure state machine: bytes in, frames out, and "now" is a parameter; `links.hpp` has the
// sockets.
//
// net.frames-numbered: Each side numbers its frames 1, 2, 3, ...  Every frame says the number of the last one that its
// sender has received; where nothing is sent for a while, an acknowledgement is sent alone.
// net.kept-until-acknowledged: A frame lies in its sender's window, as the bytes that are sent, until it is
// acknowledged.  When a connection is replaced both sides say what they have received, and go on behind it.
// net.acknowledged-means-delivered: What is acknowledged was given to the owner of the other side, whole, once.
// net.one-link-per-start: A peer has one link for each of its starts (`Who`), but tools, which have any number.  When
// it is over, the same start gets no other.  A link of a newer start ends that of an older one.
// net.silence-breaks: A connection on which nothing arrives for a while (the other side is asked to say something
// meanwhile) is given up like one that broke.
// net.patience: A link without a connection for as long as its patience is over.
//
// Credit: every frame of a peer comes with what it had received when it *queued* it.  So who sends requests and counts,
// when it queues one, at most `peer_window()` bytes of answers (frame_bytes() of each) as outstanding, knows that the
// other side has room for every answer, without waiting.
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

// Who gets a link's frames.
class FrameSink {
 public:
  // `payload` is valid during the call.  Sending on this and other links, and end(), are allowed inside.
  virtual void frame(Link&, uint16_t type, std::span<const std::byte> payload) = 0;

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

  // --- for its owner

  // Queues a frame; its bytes are copied once.  Works without a connection too.  kNoSpace: the window has no room, and
  // FrameSink's owner hears when it has again; kTooLarge: more than kPayloadMax; kNotFound: the link is over.
  // REQUIRES: type <= kTypeMax.
  Status send(uint16_t type, std::span<const Piece> pieces) noexcept;
  Status send(uint16_t type, Piece payload) noexcept { return send(type, std::span(&payload, 1)); }
  // Whether a frame with so much payload could be queued now.
  bool room_for(size_t payload) const noexcept;
  bool all_acknowledged() const noexcept { return window_.empty(); }
  uint32_t peer_window() const noexcept { return peer_window_; }  // bytes; 0: not connected yet

  const Who& self() const noexcept { return self_; }
  const Who& peer() const noexcept { return peer_; }  // start 0: not known yet (dialed, and never connected)
  uint64_t id() const noexcept { return id_; }
  bool connected() const noexcept { return phase_ == Phase::kFrames; }
  bool over() const noexcept { return ending_ != Ending::kOpen; }
  Ending ending() const noexcept { return ending_; }
  const char* reason() const noexcept { return reason_.text; }  // why it is over, or has no connection; safe to log
  // Ends it; the reason is told to the other side if there is a connection.  What is not acknowledged may or may not
  // have arrived.
  void end(const char* reason) noexcept { finish(Ending::kEndedHere, reason); }

  void* context = nullptr;  // the owner's

  // --- for who has the sockets

  struct Spec {
    Who self, peer;  // peer.start 0: any
    uint64_t cluster = 0;
    uint64_t id = 0;
    uint32_t window = 0;  // a power of two
    LinkTimes times = {};
  };
  static std::unique_ptr<Link> dialing(const Spec&, uint64_t now) noexcept;  // null: no memory
  static std::unique_ptr<Link> accepting(const Spec&, uint64_t now) noexcept;
  Link(const Link&) = delete;

  // There is a connection: the dialer's link begins with Hello, the acceptor's with its answer to `hello`.
  void attach(uint64_t now) noexcept;
  void attach(const Hello& hello, uint64_t now) noexcept;
  // The connection is gone.
  void detach(const char* why, uint64_t now) noexcept;
  bool attached() const noexcept { return phase_ != Phase::kDetached; }

  // Where the next bytes of the connection may be put; never empty while the link is attached and not over.
  std::span<std::byte> input() noexcept;
  // `bytes` were put there.  Delivers what is complete.  Afterwards the link may be over.
  void received(size_t bytes, uint64_t now, FrameSink&) noexcept;

  // What is to be sent, in pieces; how many.  0: nothing at the moment.
  static constexpr int kOutputPieces = 3;
  int output(iovec (&pieces)[kOutputPieces]) noexcept;
  void sent(size_t bytes, uint64_t now) noexcept;

  // When to call tick() at the latest.
  uint64_t deadline() const noexcept;
  // What time brings: an acknowledgement alone, a question to a silent peer, the end of a connection (then it is no
  // longer attached), the link's own end.
  void tick(uint64_t now) noexcept;
  void refuse(const char* reason) noexcept { finish(Ending::kReplaced, reason); }
  // Room was made since the last call, and the last send() before had none.
  bool take_room_made() noexcept;

 private:
  // As long as the declarations above stay, what is here is the implementation's.
  enum class Phase : uint8_t { kDetached, kGreeting, kFrames };
  void finish(Ending, const char* reason) noexcept;

  Who self_, peer_;
  uint64_t id_ = 0;
  uint32_t peer_window_ = 0;
  Phase phase_ = Phase::kDetached;
  Ending ending_ = Ending::kOpen;
  Problem reason_;
  SendWindow window_;
};

}  // namespace coherence::net

// A link between a user that does anything and a peer that says anything.  Whatever comes, frames are delivered in
// order and aligned, what is sent is a stream of whole frames, and a reason is fit for a log.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include "coherence/base/verify.hpp"
#include "coherence/transport/net/link.hpp"

namespace {

using namespace coherence;       // NOLINT
using namespace coherence::net;  // NOLINT

const Who kNode = Who::node(NodeId{3}, 17), kMemoryNode = Who::memory_node(MemoryNodeId{1}, 1000);
constexpr uint32_t kWindow = 8192;

class Script {
 public:
  Script(const uint8_t* at, size_t bytes) : left_(at, bytes) {}
  bool over() const { return left_.empty(); }
  uint8_t byte() {
    if (left_.empty()) return 0;
    const uint8_t first = left_[0];
    left_ = left_.subspan(1);
    return first;
  }
  uint16_t two() { return uint16_t(byte() | byte() << 8); }
  std::span<const uint8_t> some(size_t most) {
    const auto taken = left_.first(std::min(most, left_.size()));
    left_ = left_.subspan(taken.size());
    return taken;
  }

 private:
  std::span<const uint8_t> left_;
};

// What the link sends, on one connection.
class Stream {
 public:
  void begin(size_t greeting) { bytes_.clear(), greeting_ = greeting; }
  void take(const void* from, size_t bytes) {
    const auto* const at = static_cast<const std::byte*>(from);
    bytes_.insert(bytes_.end(), at, at + bytes);
    if (greeting_ > 0) {
      if (bytes_.size() < greeting_) return;
      bytes_.erase(bytes_.begin(), bytes_.begin() + ptrdiff_t(greeting_));
      greeting_ = 0;
    }
    FrameHeader header;
    while (bytes_.size() >= sizeof header) {
      memcpy(&header, bytes_.data(), sizeof header);
      Problem problem;
      VERIFY(check_header(header, &problem).ok());
      if (bytes_.size() < frame_bytes(header.length)) return;
      VERIFY(!ended_);
      ended_ = header.type == kEndFrame;
      bytes_.erase(bytes_.begin(), bytes_.begin() + frame_bytes(header.length));
    }
  }

 private:
  size_t greeting_ = 0;
  bool ended_ = false;
  std::vector<std::byte> bytes_;
};

class User final : public FrameSink {
 public:
  void frame(Link& link, uint16_t type, std::span<const std::byte> payload) override {
    VERIFY(type <= kTypeMax && payload.size() <= kPayloadMax);
    VERIFY(reinterpret_cast<uintptr_t>(payload.data()) % 8 == 0);
    for (const std::byte each : payload) sum_ = sum_ * 31 + unsigned(each);
    delivered++;
    if (type == 1) (void)link.send(2, payload);
    if (type == 2) link.end("the user's wish");
  }
  uint64_t delivered = 0;

 private:
  volatile unsigned sum_ = 0;
};

class Player {
 public:
  explicit Player(bool dials) : dials_(dials) {
    LinkTimes times;
    times.patience_ns = 1'000'000'000;
    const Link::Spec spec = dials ? Link::Spec{kNode, {Role::kMemoryNode, 1, 0}, 0, 5, kWindow, times}
                                  : Link::Spec{kMemoryNode, kNode, 0, 5, kWindow, times};
    link_ = dials ? Link::dialing(spec, now_) : Link::accepting(spec, now_);
  }
  void play(Script& script) {
    while (!script.over() && !link_->over()) step(script);
    if (link_->attached()) send(~size_t{0});
    for (const char* c = link_->reason(); *c; c++) VERIFY(*c >= ' ' && *c <= '~');
  }

 private:
  void step(Script& script) {
    switch (script.byte() % 10) {
      case 0:
        return attach(script);
      case 1:
        return hear(script.some(script.byte()));
      case 2:
        return hear_frame(script, true);
      case 3:
        return hear_frame(script, false);
      case 4: {
        const std::vector<std::byte> payload(script.two());
        (void)link_->send(uint16_t(script.two() % (kTypeMax + 1)), payload);
        return;
      }
      case 5:
        return send(script.two());
      case 6:
        return send(~size_t{0});
      case 7:
        now_ += uint64_t(script.two()) * 1'000'000;
        return link_->tick(now_);
      case 8:
        link_->detach("cut", now_);
        return;
      case 9:
        if (script.byte() == 77) link_->end("played");
    }
  }
  void attach(Script& script) {
    if (link_->attached()) return;
    if (dials_) {
      stream_.begin(kHelloBytes);
      link_->attach(now_);
      Welcome welcome{Refusal::kNone, kMemoryNode, 5, script.byte(), 4096};
      std::byte bytes[kWelcomeBytes];
      write_welcome(welcome, bytes);
      if (script.byte() % 8 == 0) bytes[script.byte() % kWelcomeBytes] = std::byte(script.byte());
      hear({reinterpret_cast<const uint8_t*>(bytes), sizeof bytes});
    } else {
      stream_.begin(kWelcomeBytes);
      (void)link_->attach(Hello{kNode, kMemoryNode, 0, 5, script.byte(), 4096, true}, now_);
    }
  }
  void hear(std::span<const uint8_t> bytes) {
    while (!bytes.empty() && link_->attached() && !link_->over()) {
      const std::span<std::byte> room = link_->input();
      VERIFY(!room.empty());
      const size_t some = std::min(bytes.size(), room.size());
      memcpy(room.data(), bytes.data(), some);
      bytes = bytes.subspan(some);
      const uint64_t before = user_.delivered;
      link_->received(some, now_, user_);
      VERIFY(user_.delivered - before <= bytes.size() + (1 << 20));
    }
  }
  // One with a header that may well be right.
  void hear_frame(Script& script, bool right) {
    FrameHeader header{script.two(), script.byte(), 0, user_.delivered + 1, script.byte()};
    if (!right)
      header = {script.two() * 40u, script.two(), uint16_t(script.byte() / 255), script.byte(), script.byte()};
    std::vector<uint8_t> bytes(
        std::min<size_t>(frame_bytes(std::min(header.length, kPayloadMax)), right ? 70'000 : 5'000));
    memcpy(bytes.data(), &header, sizeof header);
    hear(bytes);
  }
  void send(size_t most) {
    while (most > 0 && link_->attached()) {
      iovec pieces[Link::kOutputPieces];
      const int count = link_->output(pieces);
      VERIFY((count > 0) == link_->has_output());
      size_t bytes = 0;
      for (int i = 0; i < count && bytes < most; i++) {
        const size_t some = std::min(pieces[i].iov_len, most - bytes);
        stream_.take(pieces[i].iov_base, some);
        bytes += some;
      }
      if (bytes == 0) return;
      link_->sent(bytes);
      most -= bytes;
    }
  }

  const bool dials_;
  uint64_t now_ = 1;
  std::unique_ptr<Link> link_;
  User user_;
  Stream stream_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  Script script(data, size);
  Player player(script.byte() % 2 == 0);
  player.play(script);
  return 0;
}

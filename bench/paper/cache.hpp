// Cache: which frame of a node holds which page, and which go when frames run low: those that the product's own
// replacement proposes, for SELCC and its rivals alike.  For one thread of the operating system; nothing here waits.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <vector>

#include "bufmgr/frame/replacement.hpp"

namespace paper {

class Cache {
 public:
  static constexpr uint32_t kNone = ~uint32_t{0};
  // Page p's home is memory node p % homes, and a batch leaves for one home.  A 16th of the frames is kept free.
  Cache(uint64_t pages, uint64_t frames, int homes, int batch, uint64_t seed)
      : enough_(std::max<uint64_t>(frames / 16, 1)),
        batch_(size_t(batch)),
        frame_of_(pages, kNone),
        page_in_(frames, kNoPage),
        state_(frames),
        proposed_(size_t(homes)),
        memory_(bufmgr::FrameMarks::bytes_for(uint32_t(frames)) / sizeof(Block) + 1),
        marks_(memory_.data(), uint32_t(frames)),
        policy_(marks_, seed * 2654435761u + 1) {
    for (auto f = uint32_t(frames); f > 0; f--) free_.push_back(f - 1);
  }
  uint32_t find(uint64_t page) const { return frame_of_[page]; }
  uint64_t page(uint32_t frame) const { return page_in_[frame]; }
  size_t free_frames() const { return free_.size(); }
  bool runs_low() const { return free_.size() + leaving_ < enough_; }
  void used(uint32_t frame) { marks_.touch(frame); }
  void lose(uint32_t frame) { marks_.lose(frame); }  // its page was taken
  // REQUIRES: a free frame, no frame of the page's.
  uint32_t add(uint64_t page) {
    const uint32_t frame = free_.back();
    free_.pop_back();
    page_in_[frame] = page;
    frame_of_[page] = frame;
    marks_.begin(frame, coherence::PageId{page});
    return frame;
  }
  void remove(uint32_t frame) {  // it is found no more
    marks_.end(frame, coherence::PageId{page_in_[frame]});
    frame_of_[page_in_[frame]] = kNone;
    page_in_[frame] = kNoPage;
    keep(frame);
  }
  void give_back(uint32_t frame) { free_.push_back(frame); }

  // If frames run low: whether there is a batch now.  What is proposed stays in use until it is taken.
  bool propose() {
    uint32_t frames[kProposedMax];
    for (int looks = 0, round = 0; looks < kLooksMax && runs_low(); looks++) {
      const int count = policy_.propose(frames, kProposedMax, round);
      bool any = false;
      for (int i = 0; i < count; i++) {
        if (page_in_[frames[i]] == kNoPage || state_[frames[i]] != State::kStays) continue;
        state_[frames[i]] = State::kProposed;
        any = true;
        auto& queue = proposed_[home_of(frames[i])];
        queue.push_back(frames[i]);
        if (queue.size() >= batch_) return true;
      }
      round += !any;
    }
    return false;
  }
  // If frames run low: a batch of one home, or, of none in particular (-1), a page; each is to be removed, or kept.
  int take(int home, uint32_t* frames) {
    if (!runs_low()) return 0;
    int count = 0;
    for (size_t h = 0; h < proposed_.size() && count == 0; h++) {
      auto& queue = proposed_[h];
      if (home >= 0 ? h != size_t(home) || queue.size() < batch_ : queue.empty()) continue;
      for (size_t most = home >= 0 ? batch_ : 1; size_t(count) < most && !queue.empty(); queue.pop_front()) {
        const uint32_t frame = queue.front();
        if (state_[frame] != State::kProposed || home_of(frame) != h) continue;  // another page's
        const bool wanted = marks_.age(frame) == 0;
        state_[frame] = wanted ? State::kStays : State::kTaken;
        if (!wanted) frames[count++] = frame;
      }
    }
    leaving_ += uint64_t(count);
    policy_.evicted(count);
    return count;
  }
  void keep(uint32_t frame) {
    leaving_ -= state_[frame] == State::kTaken;
    state_[frame] = State::kStays;
  }

 private:
  static constexpr uint64_t kNoPage = ~uint64_t{0};
  static constexpr int kProposedMax = 32, kLooksMax = 64;
  enum class State : uint8_t { kStays, kProposed, kTaken };
  struct alignas(64) Block {
    std::byte bytes[64];
  };
  size_t home_of(uint32_t frame) const { return page_in_[frame] % proposed_.size(); }
  const uint64_t enough_;
  const size_t batch_;
  std::vector<uint32_t> frame_of_;
  std::vector<uint64_t> page_in_;
  std::vector<uint32_t> free_;
  std::vector<State> state_;
  uint64_t leaving_ = 0;
  std::vector<std::deque<uint32_t>> proposed_;  // by home
  std::vector<Block> memory_;
  bufmgr::FrameMarks marks_;
  bufmgr::EpochSampling policy_;
};

}  // namespace paper

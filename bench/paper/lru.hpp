// Lru: which frame of a node's cache holds which page, the least recently used one at the end.  For one thread of the
// operating system; nothing here waits.
#pragma once

#include <cstdint>
#include <vector>

namespace paper {

class Lru {
 public:
  static constexpr uint32_t kNone = ~uint32_t{0};
  Lru(uint64_t pages, uint64_t frames) : frame_of_(pages, kNone), links_(frames + 1) {
    end_ = uint32_t(frames);
    links_[end_] = {end_, end_, 0};
    for (uint32_t f = end_; f > 0; f--) free_.push_back(f - 1);
  }
  uint32_t find(uint64_t page) const { return frame_of_[page]; }
  uint64_t page(uint32_t frame) const { return links_[frame].page; }
  size_t free_frames() const { return free_.size(); }
  void used(uint32_t frame) {
    if (links_[end_].next == frame) return;
    unlink(frame);
    link_first(frame);
  }
  // REQUIRES: a free frame, no frame of the page's.
  uint32_t add(uint64_t page) {
    const uint32_t frame = free_.back();
    free_.pop_back();
    links_[frame].page = page;
    frame_of_[page] = frame;
    link_first(frame);
    return frame;
  }
  void remove(uint32_t frame) {  // nobody finds it any more
    frame_of_[links_[frame].page] = kNone;
    unlink(frame);
  }
  void give_back(uint32_t frame) { free_.push_back(frame); }
  // From the least recently used one on; kNone: none is left.
  uint32_t last() const { return before(end_); }
  uint32_t before(uint32_t frame) const { return links_[frame].previous == end_ ? kNone : links_[frame].previous; }

 private:
  struct Link {
    uint32_t previous, next;
    uint64_t page;
  };
  void unlink(uint32_t f) {
    links_[links_[f].previous].next = links_[f].next;
    links_[links_[f].next].previous = links_[f].previous;
  }
  void link_first(uint32_t f) {
    links_[f].previous = end_;
    links_[f].next = links_[end_].next;
    links_[links_[f].next].previous = f;
    links_[end_].next = f;
  }
  std::vector<uint32_t> frame_of_;
  std::vector<Link> links_;
  std::vector<uint32_t> free_;
  uint32_t end_ = 0;
};

}  // namespace paper

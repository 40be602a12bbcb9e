// UnderWay: the batches that one thread has posted and that are not complete, a few, each in a record with what goes on
// when it is.  EvictionWindow and ProtocolDriver have one each.
//
// A record has its place from take() to give_back(), and stays where it is: its batch must outlive its completion.
// Nothing is allocated, and a place that was never taken is never touched.
//
//   UnderWay<Record, 4> under_way;                 // Record has a `batch`
//   const int place = under_way.take(node);        // REQUIRES: room(); constructs the record
//   memory.post(under_way[place].batch);
//   under_way.posted(place);
//   under_way.reap([&](int done) { ...; under_way.give_back(done); });
#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <utility>

#include "coherence/base/verify.hpp"

namespace coherence {

template <class Record, int kPlaces>
class UnderWay {
 public:
  static_assert(kPlaces < 32);
  UnderWay() noexcept {}   // NOLINT: records are constructed when they are taken
  ~UnderWay() noexcept {}  // NOLINT
  UnderWay(const UnderWay&) = delete;

  bool any() const noexcept { return taken_ != 0; }
  bool room() const noexcept { return taken_ != kAll; }
  int count() const noexcept { return std::popcount(posted_); }
  Record& operator[](int place) noexcept { return record_[place]; }

  template <class... Args>
  int take(Args&&... args) noexcept {
    const int place = std::countr_one(taken_);
    VERIFY(place < kPlaces);
    taken_ |= 1u << place;
    std::construct_at(&record_[place], std::forward<Args>(args)...);
    return place;
  }
  void posted(int place) noexcept { posted_ |= 1u << place; }
  void give_back(int place) noexcept { taken_ &= ~(1u << place); }

  // Calls end(place) for each whose batch is complete; whether there was one.  What end() posts is looked at next time.
  template <class End>
  bool reap(End end) noexcept {
    bool any = false;
    for (uint32_t left = posted_; left; left &= left - 1) {
      const int place = std::countr_zero(left);
      if (!record_[place].batch.done()) continue;
      posted_ &= ~(1u << place);
      end(place);
      any = true;
    }
    return any;
  }

 private:
  static constexpr uint32_t kAll = (1u << kPlaces) - 1;
  uint32_t taken_ = 0, posted_ = 0;  // a bit for each place
  union {
    Record record_[kPlaces];  // those that are taken
  };
};

}  // namespace coherence

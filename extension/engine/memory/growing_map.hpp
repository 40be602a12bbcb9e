// GrowingMap: values by number, which says so when there is no memory for another (see GrowingArray).  Nothing is taken
// out but all at once.
//
// Of one thread.  make() and forget() invalidate pointers to values.
#pragma once

#include <cstdint>
#include <memory>
#include <new>
#include <utility>

#include "coherence/base/verify.hpp"

namespace engine {

template <class Value>
class GrowingMap {
 public:
  static constexpr uint64_t kNoKey = ~uint64_t{0};

  // Null: there is none.
  const Value* find(uint64_t key) const noexcept {
    if (count_ == 0) return nullptr;
    const Slot& slot = slots_[place_of(key)];
    return slot.key == key ? &slot.value : nullptr;
  }
  // The value of `key`, a fresh one if there was none.  Null: no memory, and nothing has changed.
  [[nodiscard]] Value* make(uint64_t key) noexcept {
    VERIFY(key != kNoKey);
    if (const Value* there = find(key)) return const_cast<Value*>(there);  // NOLINT: the map is not const
    if (4 * (count_ + 1) > 3 * size_ && !grow()) return nullptr;
    Slot& slot = slots_[place_of(key)];
    slot.key = key;
    ++count_;
    return &slot.value;
  }
  // Gives all memory back.
  void forget() noexcept {
    slots_.reset();
    size_ = count_ = 0;
  }
  bool empty() const noexcept { return count_ == 0; }
  template <class F>
  void for_each(F f) const {
    for (uint64_t i = 0; i < size_; ++i)
      if (slots_[i].key != kNoKey) f(slots_[i].value);
  }

 private:
  static constexpr uint64_t kFirst = 16, kSpread = 0x9E3779B97F4A7C15ull;
  struct Slot {
    uint64_t key = kNoKey;
    Value value{};
  };
  // Where it is, or belongs.  A quarter of the slots is free, so there is such a place.
  uint64_t place_of(uint64_t key) const noexcept {
    uint64_t at = (key * kSpread >> 32) & (size_ - 1);
    while (slots_[at].key != key && slots_[at].key != kNoKey) at = (at + 1) & (size_ - 1);
    return at;
  }
  bool grow() noexcept {
    const uint64_t before = size_;
    const uint64_t size = before == 0 ? kFirst : 2 * before;
    std::unique_ptr<Slot[]> slots(new (std::nothrow) Slot[size]);
    if (slots == nullptr) return false;
    slots_.swap(slots);
    size_ = size;
    for (uint64_t i = 0; i < before; ++i)
      if (slots[i].key != kNoKey) slots_[place_of(slots[i].key)] = std::move(slots[i]);
    return true;
  }

  std::unique_ptr<Slot[]> slots_;
  uint64_t size_ = 0, count_ = 0;  // size_: 0 or a power of two
};

}  // namespace engine

// GrowingArray: an array that says so when there is no memory for more.
//
// The engine is compiled without exceptions, so a std::vector that finds no memory ends the process, and with it the
// pool.  What grows with the work of one transaction grows here: room is made before anything changes, and where there
// is none the transaction fails (Errc::kNoMemory).
//
//   if (!array.make_room(1)) return Errc::kNoMemory;
//   ... what cannot be undone ...
//   array.push_back(value);
//
// Of one thread.  Elements are plain values; what changes the array invalidates pointers into it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "coherence/base/verify.hpp"

namespace engine {

template <class T>
class GrowingArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  GrowingArray() = default;
  GrowingArray(GrowingArray&& other) noexcept { *this = std::move(other); }
  GrowingArray& operator=(GrowingArray&& other) noexcept {
    items_ = std::move(other.items_);
    size_ = std::exchange(other.size_, 0);
    room_ = std::exchange(other.room_, 0);
    return *this;
  }

  // For `more` elements behind those that are there.  False: no memory, and nothing has changed.
  [[nodiscard]] bool make_room(uint64_t more) noexcept {
    if (room_ - size_ >= more) return true;
    const uint64_t room = std::max(size_ + more, uint64_t{2} * room_);
    if (room > std::numeric_limits<uint32_t>::max()) return false;
    std::unique_ptr<T[]> larger(new (std::nothrow) T[room]);
    if (larger == nullptr) return false;
    std::copy_n(items_.get(), size_, larger.get());
    items_ = std::move(larger);
    room_ = uint32_t(room);
    return true;
  }
  // REQUIRES: room.
  void push_back(const T& value) noexcept { insert(size_, value); }
  void insert(uint32_t at, T value) noexcept {
    VERIFY(at <= size_ && size_ < room_);
    std::copy_backward(begin() + at, end(), end() + 1);
    items_[at] = value;
    ++size_;
  }
  void erase(uint32_t at) noexcept {
    VERIFY(at < size_);
    std::copy(begin() + at + 1, end(), begin() + at);
    --size_;
  }
  // Leaves the first `size`; the room stays.
  void truncate(uint32_t size) noexcept { size_ = std::min(size_, size); }

  bool empty() const { return size_ == 0; }
  uint32_t size() const { return size_; }
  T& operator[](size_t i) { return items_[i]; }
  const T& operator[](size_t i) const { return items_[i]; }
  T* begin() { return items_.get(); }
  T* end() { return items_.get() + size_; }
  const T* begin() const { return items_.get(); }
  const T* end() const { return items_.get() + size_; }
  const T& front() const { return items_[0]; }
  const T& back() const { return items_[size_ - 1]; }

 private:
  std::unique_ptr<T[]> items_;
  uint32_t size_ = 0, room_ = 0;
};

}  // namespace engine

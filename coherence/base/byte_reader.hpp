// ByteReader: takes what was written one behind the other from the front of some bytes, and never more than there is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

namespace coherence {

class ByteReader {
 public:
  explicit ByteReader(std::span<const std::byte> bytes) : left_(bytes) {}
  // False, here and below: there is not as much; then nothing is taken.
  bool take(void* to, size_t bytes) {
    if (bytes > left_.size()) return false;
    if (bytes > 0) memcpy(to, left_.data(), bytes);
    left_ = left_.subspan(bytes);
    return true;
  }
  template <class Item>
  bool take(std::vector<Item>* to, uint64_t count) {
    static_assert(std::is_trivially_copyable_v<Item>);
    if (count > left_.size() / sizeof(Item)) return false;
    to->resize(count);
    return take(static_cast<void*>(to->data()), count * sizeof(Item));
  }
  void skip(size_t bytes) { left_ = left_.subspan(bytes); }  // REQUIRES: there are as many
  std::span<const std::byte> left() const { return left_; }

 private:
  std::span<const std::byte> left_;
};

}  // namespace coherence

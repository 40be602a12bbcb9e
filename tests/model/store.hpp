// What an exploration fills by the gigabyte.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>

#include "coherence/base/verify.hpp"

namespace coherence::model {

// A vector that never moves, and keeps its memory for the next exploration: giving memory to a process costs more than
// exploring does.  It has address space for more than any machine has memory, and of it only what was used is memory.
template <typename T>
class Store {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  Store() {
    void* const at = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    VERIFY(at != MAP_FAILED);
    madvise(at, kBytes, MADV_HUGEPAGE);  // where the kernel has them
    items_ = static_cast<T*>(at);
  }
  ~Store() { munmap(items_, kBytes); }
  Store(const Store&) = delete;
  Store& operator=(const Store&) = delete;

  void push_back(const T& item) {
    VERIFY(size_ < kBytes / sizeof(T));
    new (&items_[size_++]) T(item);
  }
  void clear() { size_ = 0; }
  void assign(size_t size, const T& item) {
    VERIFY(size <= kBytes / sizeof(T));
    std::uninitialized_fill_n(items_, size, item);
    size_ = size;
  }
  size_t size() const { return size_; }
  T& operator[](size_t i) { return items_[i]; }
  const T& operator[](size_t i) const { return items_[i]; }
  const T* begin() const { return items_; }
  const T* end() const { return items_ + size_; }

 private:
  static constexpr size_t kBytes = size_t{16} << 30;
  T* items_;
  size_t size_ = 0;
};

}  // namespace coherence::model

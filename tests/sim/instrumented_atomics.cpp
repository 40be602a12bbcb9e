// Every access to an atomic is a place where another fiber may go on.
//
// The product's sources are compiled for the simulator with -fsanitize=thread, and linked with these functions in place
// of ThreadSanitizer's: the compiler calls them for each access; the sources are unchanged.  An access counts
// down and then happens; accesses to plain memory do nothing here.  All orders are as seq_cst, since one thread of the
// operating system runs everything: weak orders are ThreadSanitizer's business, with the unit tests.
#include <cstdint>

#include "mutation.hpp"
#include "scheduler.hpp"

namespace {

inline void access(const volatile void* word) {
  if (--sim::accesses_left < 0) sim::out_of_accesses(word);
}

template <class T>
bool same(bool uncounted, T one, T other) {
  return one == other || (uncounted && sizeof(T) == 8 && uint32_t(one) == uint32_t(other));
}

}  // namespace

extern "C" {

using Order = int;

// NOLINTBEGIN: the names are the compiler's
#define GCL_ATOMICS(bits, type)                                                                                   \
  type __tsan_atomic##bits##_load(const volatile type* a, Order) {                                                \
    access(a);                                                                                                    \
    return *a;                                                                                                    \
  }                                                                                                               \
  void __tsan_atomic##bits##_store(volatile type* a, type v, Order) {                                             \
    access(a);                                                                                                    \
    *a = v;                                                                                                       \
  }                                                                                                               \
  type __tsan_atomic##bits##_exchange(volatile type* a, type v, Order) {                                          \
    access(a);                                                                                                    \
    type old = *a;                                                                                                \
    *a = v;                                                                                                       \
    return old;                                                                                                   \
  }                                                                                                               \
  type __tsan_atomic##bits##_fetch_add(volatile type* a, type v, Order) {                                         \
    access(a);                                                                                                    \
    type old = *a;                                                                                                \
    *a = type(old + v);                                                                                           \
    return old;                                                                                                   \
  }                                                                                                               \
  type __tsan_atomic##bits##_fetch_sub(volatile type* a, type v, Order) {                                         \
    access(a);                                                                                                    \
    type old = *a;                                                                                                \
    *a = type(old - v);                                                                                           \
    return old;                                                                                                   \
  }                                                                                                               \
  type __tsan_atomic##bits##_fetch_and(volatile type* a, type v, Order) {                                         \
    access(a);                                                                                                    \
    type old = *a;                                                                                                \
    *a = type(old & v);                                                                                           \
    return old;                                                                                                   \
  }                                                                                                               \
  type __tsan_atomic##bits##_fetch_or(volatile type* a, type v, Order) {                                          \
    access(a);                                                                                                    \
    type old = *a;                                                                                                \
    *a = type(old | v);                                                                                           \
    return old;                                                                                                   \
  }                                                                                                               \
  type __tsan_atomic##bits##_fetch_xor(volatile type* a, type v, Order) {                                         \
    access(a);                                                                                                    \
    type old = *a;                                                                                                \
    *a = type(old ^ v);                                                                                           \
    return old;                                                                                                   \
  }                                                                                                               \
  int __tsan_atomic##bits##_compare_exchange_strong(volatile type* a, type* expected, type v, Order, Order) {     \
    access(a);                                                                                                    \
    const bool uncounted = sizeof(type) == 8 && sim::is_uncounted(a);                                             \
    type old = *a;                                                                                                \
    if (same(uncounted, old, *expected)) {                                                                        \
      *a = v;                                                                                                     \
      return 1;                                                                                                   \
    }                                                                                                             \
    *expected = old;                                                                                              \
    return 0;                                                                                                     \
  }                                                                                                               \
  int __tsan_atomic##bits##_compare_exchange_weak(volatile type* a, type* expected, type v, Order o1, Order o2) { \
    return __tsan_atomic##bits##_compare_exchange_strong(a, expected, v, o1, o2);                                 \
  }                                                                                                               \
  type __tsan_atomic##bits##_compare_exchange_val(volatile type* a, type expected, type v, Order, Order) {        \
    access(a);                                                                                                    \
    type old = *a;                                                                                                \
    if (old == expected) *a = v;                                                                                  \
    return old;                                                                                                   \
  }
GCL_ATOMICS(8, uint8_t)
GCL_ATOMICS(16, uint16_t)
GCL_ATOMICS(32, uint32_t)
GCL_ATOMICS(64, uint64_t)
#undef GCL_ATOMICS
void __tsan_atomic_thread_fence(Order) { access(&sim::accesses_left); }
void __tsan_atomic_signal_fence(Order) {}

#define GCL_PLAIN(bytes)                               \
  void __tsan_read##bytes(void*) {}                    \
  void __tsan_write##bytes(void*) {}                   \
  void __tsan_unaligned_read##bytes(const void*) {}    \
  void __tsan_unaligned_write##bytes(void*) {}         \
  void __tsan_volatile_read##bytes(void*) {}           \
  void __tsan_volatile_write##bytes(void*) {}          \
  void __tsan_unaligned_volatile_read##bytes(void*) {} \
  void __tsan_unaligned_volatile_write##bytes(void*) {}
GCL_PLAIN(1)
GCL_PLAIN(2)
GCL_PLAIN(4)
GCL_PLAIN(8)
GCL_PLAIN(16)
#undef GCL_PLAIN
void __tsan_read_range(void*, unsigned long) {}
void __tsan_write_range(void*, unsigned long) {}
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_init() {}
// NOLINTEND
}

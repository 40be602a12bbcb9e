// Where a test finds the pool's bytes in its own memory, behind the back of every transport.
#pragma once

#include "coherence/transport/shm/mapped_pool.hpp"

namespace gcl_test {

inline std::byte* pool_bytes(coherence::Pool& pool, coherence::PoolAddress at) {
  return coherence::MappedPool::of(pool).base(at.node()) + at.offset();
}
inline std::byte* pool_bytes(coherence::Pool& pool, coherence::PageId page) {
  return pool_bytes(pool, pool.page_address(page));
}

}  // namespace gcl_test

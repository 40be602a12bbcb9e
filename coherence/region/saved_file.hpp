// A pool's durable copy, one file of it or all, read and believed only after its checksums were
// (pool.copy-checksummed).
#pragma once

#include <cstdint>

#include "coherence/base/problem.hpp"
#include "coherence/base/result.hpp"
#include "coherence/region/damage.hpp"
#include "coherence/region/pool_header.hpp"

namespace coherence {

// Whether memory node K's header is as it was saved.  kCorrupt, with the words of its Damage; kSystem.  Says nothing of
// a file that was cut off or grew: check_whole() does.  `pool`: memory node 0's name.
Status check_saved_header(int fd, const PoolHeader&, uint32_t k, const char* pool, Problem*);

// The two of memory node 0's, and its format.  kCorrupt, kIncompatible, kSystem.
Status read_saved_header(int fd, const char* pool, PoolHeader*, Problem*);

// Reads memory node K's file from its begin to its end and checks each block.  As long as nothing was found bad, what
// is not zero is written to `to`, unless that is -1.  kCorrupt: it has not the size of a whole file; kSystem, kNoSpace.
// What is bad is no error: it is in *damage.
Status read_saved(int from, uint32_t k, const char* pool, int to, Damage* damage, Problem*);

// Reads all files of a copy that no process writes meanwhile, and checks each block; says so of the last save, also
// while the copy says "in use".  kCorrupt: what the damage tells, or a file is missing or has the wrong size;
// kNotFound, kIncompatible (of another format), kSystem.
Status verify_saved(const char* durable_path, Damage*, Problem*);

}  // namespace coherence

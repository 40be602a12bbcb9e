// The file of one memory node by itself: made, checked, saved and loaded, by a process that has that file and knows
// nothing of the others.  A pool on one machine does it for each of its files (transport/shm/local_pool.hpp).
//
// region.one-file: Nothing here opens another memory node's file, takes a lock, or asks who is in the pool: that no
//     node works there, and in which order the files of a copy are put in their places
//     (pool.memory-node-zero-decides, pool.saved-beside), is said by the process that sees them all.
//
//   PoolHeader header = ...;                              // what all memory nodes of the pool have in common
//   lay_out_region(spec, 2, &header);
//   GCL_TRY(make_region("/dev/shm/p", header, &problem));  // "/dev/shm/p.mem2"
//   ...                                                    // the pool is used, and left
//   GCL_TRY(check_words_free("/dev/shm/p", 2, &problem));
//   GCL_TRY(save_region("/dev/shm/p", 2, "/data/p.next.mem2", &problem));
#pragma once

#include <cstdint>

#include "coherence/base/problem.hpp"
#include "coherence/base/result.hpp"
#include "coherence/region/damage.hpp"
#include "coherence/region/pool_header.hpp"

namespace coherence {

// Memory node K's parts and size, its number with them.
void lay_out_region(const PoolSpec&, uint32_t k, PoolHeader*);
// Makes the file of the memory node that the header names, all of it allocated and zero, which gets its name last.
// `pool`: memory node 0's name.  kNoSpace, kSystem.
Status make_region(const char* pool, const PoolHeader&, Problem*);
// The same of a file that is allocated already, under another name.
Status name_region(int fd, const char* unnamed, const char* pool, const PoolHeader&, Problem*);

// What the file says of itself, if it is a whole one of this format, and in its place; of a durable copy (`saved`),
// also if its header is as it was saved.  kCorrupt, kIncompatible, kSystem.
Status check_region(const char* pool, uint32_t k, bool saved, PoolHeader*, Problem*);
// Whether no node has any of its pages (pool.words-never-saved).  kCorrupt, kSystem.
Status check_words_free(const char* pool, uint32_t k, Problem*);

// Writes the durable copy of memory node K's file, with its checksums, as a new file of that name: it is on the disk
// when this returns.  kNoSpace, kSystem.
Status save_region(const char* pool, uint32_t k, const char* to, Problem*);
// Memory node 0's copy says from now on that it is no longer the truth (pool.copy-marked-in-use).
Status mark_copy_in_use(const char* durable_path, Problem*);

// Memory node K's copy is checked and, as long as nothing was found bad, brought into memory, as `bytes` under the
// unfinished name (MemoryPath).  What is bad is no error: it is in *damage.  kNotFound, kCorrupt (it is no whole file),
// kNoSpace, kSystem.
Status load_region(const char* durable_path, uint32_t k, uint64_t bytes, const char* pool, Damage*, Problem*);
// It gets its name.
Status name_loaded(const char* pool, uint32_t k, Problem*);

}  // namespace coherence

// Whether a primary's data directory is the one that it left the pool with (ddl.own-data-directory).
//
// Every start of the server is a life with a number of its own, and its clean end is another one; both stand in the
// pool, in a word of the channel, and in a file beside the data.  A copy of the data directory that is older
// than the last stop, of another primary, or of another pool, has another number: what the primary has itself
// committed meanwhile would be missing there for good (ddl.member-has-applied-log), and its OIDs would be given again.
//
// A copy that is to be another primary's begins with a number that it and the pool were given when it was made
// (ddl.log-has-end).
//
//   <data>/gcl_ddl/life:  node, number before, number now
//   <data>/gcl_ddl/restored:  there is one in a directory that gclctl restore has made, until its first life
//   <data>/gcl_ddl/copy:  the same, of the primary that copies of this directory will be
#pragma once

#include <cstdint>

namespace gcl {

// What begin_life() will find; nothing is noted.  Any process, before the launcher has begun.
enum class DataDirectory : uint8_t {
  kOwn,
  kCopy,  // of another primary's, made to be this one's
  kAnother
};
DataDirectory data_directory();
// False: this is another data directory; why is noted (refusal in ddl_node_state.hpp).  Called once in a life of the
// server, by the launcher.
bool begin_life();
// The launcher ends in order; nothing of DDL follows.
void end_life();

// This directory is a copy (runtime.copies-stay-out), and a server starts on it that is in no pool: it is not that of
// its primary any more.  Before shared memory is there.
void end_life_of_old_copy();

// What is copied from here on may be that primary's, if the pool hears of the number, which is returned.
uint64_t write_life_of_copy(uint8_t node);
// The copy is made, or is not to be used: 0.
void end_life_of_copy(uint8_t node, uint64_t life) noexcept;
// No directory is that primary's, until there is a copy for it.
void end_life_of(uint8_t node);

}  // namespace gcl

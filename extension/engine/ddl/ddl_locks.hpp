// DdlLocks: the right to write DDL.  One lock for each database, and one of the whole cluster, which excludes them all:
// for what all databases have, and for a primary that joins.
//
// ddl_log.database-or-cluster-lock: A session that takes a database's lock reads the whole cluster's lock afterwards; a
//     session that takes the cluster's lock reads all others afterwards.  Of two sessions, one sees the other
//     (DdlRegion::load_newest).
// ddl_log.cluster-lock-keeps-out: A session that has taken the whole cluster's lock and meets holders of others keeps
//     it and waits for them, so no new holder comes in.  A database's lock is given back when another session has the
//     whole cluster's lock, unless it was held before.
// ddl_log.lock-by-name: A database has a lock by its name, for good.  If there are more databases than
//     kDdlDatabasesMax, some share a lock.
// ddl_log.want-then-retry: A session that has failed to get a lock or a slot says that it wants one, and tries once
//     more before it sleeps.  A session that gives one back asks afterwards whether any session wants it.
#pragma once

#include <array>
#include <string_view>

#include "extension/engine/ddl/ddl_region.hpp"

namespace engine {

// What sessions have said that they want: locks, and slots of the channel.
class DdlWanted {
 public:
  constexpr explicit DdlWanted(uint64_t bits) : bits_(bits) {}
  static constexpr DdlWanted slot() { return DdlWanted(uint64_t{1} << 63); }
  // The last locks of databases share a bit.
  static constexpr DdlWanted of(int lock) { return DdlWanted(uint64_t{1} << (lock < 62 ? lock : 62)); }
  constexpr uint64_t bits() const { return bits_; }
  constexpr bool any() const { return bits_ != 0; }
  // Whether a session may wait for the holder of that lock.
  constexpr bool waits_for_holder_of(int lock) const {
    const uint64_t locks = bits_ & ~slot().bits_;  // all of which wait for the whole cluster's
    return lock == 0 ? locks != 0 : (locks & (of(lock).bits_ | of(0).bits_)) != 0;
  }

 private:
  uint64_t bits_;
};

class DdlLocks {
 public:
  static constexpr int kWholeCluster = 0;

  explicit DdlLocks(DdlRegion& region) : region_(region) {}
  int lock_of(std::string_view database);  // 1 to kDdlDatabasesMax
  // True if `me` has it now, or had it.  False: *other has what is in the way; of the whole cluster's, see
  // ddl_log.cluster-lock-keeps-out.
  bool try_lock(int lock, DdlHolder me, uint64_t now, DdlHolder* other);
  void unlock(int lock, DdlHolder me);  // no-op if `me` does not hold it
  bool unlock_all(DdlHolder me);        // true if it held any
  DdlLockWords words(int lock);         // for views

  // The whole cluster's, and behind it those of databases; all are none: the pool could not be read.
  using Holders = std::array<DdlHolder, 1 + kDdlDatabasesMax>;
  Holders holders();

  // ddl_log.want-then-retry.
  void want(DdlWanted);
  DdlWanted take_wanted();  // some: the waiters are to be told; they say so anew if they have to go on waiting

 private:
  coherence::PoolAddress word(int lock, uint32_t field) const {
    return region_.at(kDdlLocks + uint64_t(lock) * sizeof(DdlLockWords) + field);
  }
  // The lock's holder afterwards, which may be `me`.
  DdlHolder try_take(int lock, DdlHolder me, uint64_t now, bool* fresh);
  DdlHolder other_holder(DdlHolder me);  // of any database's

  DdlRegion& region_;
};

}  // namespace engine

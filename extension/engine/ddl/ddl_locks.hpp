// DdlLocks: who may write DDL.  One lock for each database, and one of the whole cluster, which excludes them all: for
// what all databases have, and for a primary that joins.
//
// K1. Who takes a database's lock looks at the whole cluster's afterwards, who takes that looks at all others
//     afterwards: of two, one sees the other (DdlRegion::look).
// K2. Who has the whole cluster's, and meets others, keeps it and waits for them: nobody new comes in between.  A
//     database's lock is let go when the whole cluster's is somebody's, unless it was held before.
// K3. A database has a lock by its name, for good.  If there are more than kDdlDatabasesMax, some share one.
// K4. Who waits for a lock, or for a slot, says that it wants one when it has failed, and tries once more before it
//     sleeps; who gives one back looks afterwards whether anybody does.
#pragma once

#include <string_view>

#include "extension/engine/ddl/ddl_region.hpp"

namespace engine {

class DdlLocks {
 public:
  static constexpr int kWholeCluster = 0;

  explicit DdlLocks(DdlRegion& region) : region_(region) {}
  int lock_of(std::string_view database);  // 1 to kDdlDatabasesMax
  // True if `me` has it now, or had it.  False: *other has what is in the way; of the whole cluster's, see K2.
  bool try_lock(int lock, DdlHolder me, uint64_t now, DdlHolder* other);
  void unlock(int lock, DdlHolder me);  // no-op if `me` does not hold it
  bool unlock_all(DdlHolder me);        // true if it held any
  DdlLockWords words(int lock);         // for views

  // K4.
  void want();
  bool take_wanted();  // true: who waits is to be told, and says so anew if it has to go on

 private:
  coherence::PoolAddress word(int lock, uint32_t field) const {
    return region_.at(kDdlLocks + uint64_t(lock) * sizeof(DdlLockWords) + field);
  }
  // The lock's holder behind it, who may be `me`.
  DdlHolder claim(int lock, DdlHolder me, uint64_t now, bool* fresh);
  DdlHolder other_holder(DdlHolder me);  // of any database's

  DdlRegion& region_;
};

}  // namespace engine

// Lock tags of our own in the server's lock manager, so that waits for them are seen, cancelled and bounded as any.
#pragma once

#include "extension/pg/ddl/base/pg.hpp"

extern "C" {
#include "storage/lock.h"
}

namespace gcl {

enum class UserLock : uint32_t {
  kDdl = 0x64646c,         // "ddl": a DDL lock, by its number
  kCatchingUp = 0x6c6f67,  // "log": the process that applies the log, by the OID of the position
};

inline LOCKTAG user_lock_tag(UserLock what, uint32_t which) {
  LOCKTAG tag;
  tag.locktag_field1 = 0x67636c;  // "gcl"
  tag.locktag_field2 = uint32(what);
  tag.locktag_field3 = which;
  tag.locktag_field4 = 0;
  tag.locktag_type = LOCKTAG_USERLOCK;
  tag.locktag_lockmethodid = DEFAULT_LOCKMETHOD;
  return tag;
}

}  // namespace gcl

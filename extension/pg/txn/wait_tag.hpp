// The tag that stands for a remote transaction in this server's lock manager: an advisory lock of a class of its own.
#pragma once

#include "extension/pg/boundary/pg.hpp"

extern "C" {
#include "storage/lock.h"
}

namespace gcl {

inline LOCKTAG wait_tag(uint64_t id) {
  LOCKTAG tag;
  SET_LOCKTAG_ADVISORY(tag, InvalidOid, uint32(id >> 32), uint32(id), 3);
  return tag;
}

}  // namespace gcl

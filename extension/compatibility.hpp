// What a server must have in common with the pool it joins, as lines "name=value": composed alike by gclctl, which
// creates the pool, and by every primary at start.  Another glibc would silently corrupt text indexes; minor versions
// of PostgreSQL have changed what is stored in composite values.
#pragma once

#include <gnu/libc-version.h>

#include <string>

namespace gcl {

// `server_version` as in SHOW server_version_num; `encoding` and `locale` of the shared database (GUC gcl.locale:
// "UTF8/C.UTF-8"), which each backend compares with its own database.
inline std::string server_compatibility(int server_version, int block_size, const std::string& locale) {
  return "server version=" + std::to_string(server_version) + "\nblock size=" + std::to_string(block_size) +
         "\nlibc=" + gnu_get_libc_version() + "\nlocale=" + locale + "\n";
}

}  // namespace gcl

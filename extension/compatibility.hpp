// What a server must have in common with the pool it joins, as lines "name=value": composed alike by gclctl, which
// creates the pool, and by every primary at start.  Another glibc would silently corrupt text indexes.
//
// extension.minor-versions-mix: Of PostgreSQL's version only the major one is in it: minor ones keep the format of what
//     they store and WAL, as PostgreSQL promises to standbys, and may be in one pool.  Of gcl's own version nothing is:
//     its formats have numbers of their own (pool.bound-to-layout, pool.one-protocol).
#pragma once

#include <gnu/libc-version.h>

#include <string>

namespace gcl {

// `server_version` as in SHOW server_version_num; `encoding` and `locale` of the shared database (GUC gcl.locale:
// "UTF8/C.UTF-8"), which each backend compares with its own database.
inline std::string server_compatibility(int server_version, int block_size, const std::string& locale) {
  return "server version=" + std::to_string(server_version / 10000) + "\nblock size=" + std::to_string(block_size) +
         "\nlibc=" + gnu_get_libc_version() + "\nlocale=" + locale + "\n";
}

}  // namespace gcl

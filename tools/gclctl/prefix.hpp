// The private prefix: an installation of PostgreSQL of the cluster's own, so that no system directory is touched.
//
// `postgres` is copied, because a server finds its libraries and extension scripts relative to its own binary (symlinks
// resolved); everything else is symlinked, and the extension lies beside it.
#pragma once

#include <filesystem>
#include <string>

namespace gclctl {

namespace fs = std::filesystem;

// The system's PostgreSQL, as pg_config named it when gclctl was built.
struct Installation {
  fs::path bindir, pkglibdir, sharedir;
};
const Installation& installation();

// Where `path` of the installation lies in the private prefix.
fs::path mirrored(const fs::path& prefix, const fs::path& path);

// Makes the prefix and puts the extension into it.
void make_prefix(const fs::path& prefix);

// "15.20" as PostgreSQL's number 150020, of the server in `bindir`.
int server_version(const fs::path& bindir);

}  // namespace gclctl

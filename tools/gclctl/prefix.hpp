// The private prefix: an installation of PostgreSQL of the cluster's own, so that no system directory is touched.
//
// `postgres` is copied, because a server finds its libraries and extension scripts relative to its own binary (symlinks
// resolved); everything else is symlinked, and the extension lies beside it.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

namespace gclctl {

namespace fs = std::filesystem;

// The system's PostgreSQL, as pg_config named it when gclctl was built.
struct Installation {
  fs::path bindir, pkglibdir, sharedir;
};
const Installation& installation();

// Where `path` of the installation lies in the private prefix.
fs::path mirrored(const fs::path& prefix, const fs::path& path);

// The extension's files, open: they may lie where the account of the servers cannot look.  They stay open until the
// program ends.
struct ExtensionFile {
  std::string name;
  int descriptor;
  mode_t mode;
};
struct ExtensionFiles {
  std::vector<ExtensionFile> programs;  // gclctl, for the servers' own calls (gcl.checkpoint_command); gcl_memnode
  ExtensionFile library;
  std::vector<ExtensionFile> scripts;
};
// Beside gclctl (BUILD/bin/gclctl, BUILD/lib/gcl.so, BUILD/share/gcl/*), or in the system's directories.
ExtensionFiles open_extension();

// Makes the prefix and puts the extension into it.
void make_prefix(const fs::path& prefix, const ExtensionFiles& extension);

// Whether server, library and scripts of two prefixes are the same, byte for byte.
bool same_software(const fs::path& one, const fs::path& other);

// "PostgreSQL 15.20, gcl 1.1".
std::string software_in(const fs::path& prefix);

// "15.20" as PostgreSQL's number 150020, of the server in `bindir`.
int server_version(const fs::path& bindir);

}  // namespace gclctl

#include "tools/gclctl/prefix.hpp"

#include <cstdio>
#include <string>

#include "tools/gclctl/failure.hpp"
#include "tools/gclctl/process.hpp"

namespace gclctl {
namespace {

// The directory above all three, /usr on Debian.
fs::path common_parent() {
  const Installation& at = installation();
  fs::path common;
  auto b = at.bindir.begin(), l = at.pkglibdir.begin(), s = at.sharedir.begin();
  while (b != at.bindir.end() && l != at.pkglibdir.end() && s != at.sharedir.end() && *b == *l && *b == *s) {
    common /= *b;
    ++b, ++l, ++s;
  }
  return common;
}

// Symlinks every entry of `from` into the new directory `to`, but for the one named `but`.
void link_entries(const fs::path& from, const fs::path& to, const std::string& but) {
  fs::create_directories(to);
  for (const auto& entry : fs::directory_iterator(from))
    if (entry.path().filename() != but) fs::create_symlink(entry.path(), to / entry.path().filename());
}

// The extension's files lie beside gclctl: BUILD/bin/gclctl, BUILD/lib/gcl.so, BUILD/share/gcl/*; after an installation
// in the system's own directories.
void install_extension(const fs::path& pkglib, const fs::path& extension) {
  fs::path root = fs::read_symlink("/proc/self/exe").parent_path().parent_path();
  fs::path library = root / "lib" / "gcl.so", scripts = root / "share" / "gcl";
  if (!fs::exists(library))
    library = installation().pkglibdir / "gcl.so", scripts = installation().sharedir / "extension";
  if (!fs::exists(library)) fail("gcl.so is neither in {} nor in {}", (root / "lib").string(), library.string());
  fs::remove(pkglib / "gcl.so");
  fs::copy_file(library, pkglib / "gcl.so");
  int found = 0;
  for (const auto& entry : fs::directory_iterator(scripts)) {
    std::string name = entry.path().filename();
    if (name != "gcl.control" && !(name.starts_with("gcl--") && name.ends_with(".sql"))) continue;
    fs::remove(extension / name);
    fs::copy_file(entry.path(), extension / name);
    found++;
  }
  if (found < 2) fail("gcl.control and its script are not in {}", scripts.string());
}

}  // namespace

const Installation& installation() {
  static const Installation kSystem{GCL_PG_BINDIR, GCL_PG_PKGLIBDIR, GCL_PG_SHAREDIR};
  return kSystem;
}

fs::path mirrored(const fs::path& prefix, const fs::path& path) {
  return prefix / path.lexically_relative(common_parent());
}

void make_prefix(const fs::path& prefix) {
  const Installation& at = installation();
  if (!fs::exists(at.bindir / "initdb")) fail("no PostgreSQL 15 server in {}", at.bindir.string());
  fs::path bin = mirrored(prefix, at.bindir), lib = mirrored(prefix, at.pkglibdir),
           share = mirrored(prefix, at.sharedir);
  link_entries(at.bindir, bin, "postgres");
  fs::copy_file(at.bindir / "postgres", bin / "postgres");
  link_entries(at.pkglibdir, lib, "");
  link_entries(at.sharedir, share, "extension");
  link_entries(at.sharedir / "extension", share / "extension", "");
  install_extension(lib, share / "extension");
}

int server_version(const fs::path& bindir) {
  std::string text = output_of({(bindir / "postgres").string(), "--version"});
  int major = 0, minor = 0;
  size_t digit = text.find_first_of("0123456789");
  if (digit == std::string::npos || sscanf(text.c_str() + digit, "%d.%d", &major, &minor) != 2)
    fail("{} does not tell its version: {}", (bindir / "postgres").string(), text);
  return major * 10000 + minor;
}

}  // namespace gclctl

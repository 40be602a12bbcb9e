#include "tools/gclctl/prefix.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
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

// From its beginning, also if it has been read before.
void copy_to(const ExtensionFile& file, const fs::path& to) {
  fs::remove(to);
  const int out = open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, file.mode);
  bool good = out >= 0;
  char buffer[1 << 16];
  off_t at = 0;
  for (ssize_t n; good && (n = pread(file.descriptor, buffer, sizeof buffer, at)) != 0; at += n)
    good = n > 0 && write(out, buffer, size_t(n)) == n;
  if (!good || close(out) != 0) fail("cannot write {}: {}", to.string(), strerror(errno));
}

ExtensionFile open_file(const fs::path& path) {
  struct stat found {};
  const int descriptor = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0 || fstat(descriptor, &found) != 0) fail("{}: {}", path.string(), strerror(errno));
  return {path.filename(), descriptor, found.st_mode & 0755};
}

bool same_bytes(const fs::path& one, const fs::path& other) {
  std::error_code error;
  if (fs::file_size(one, error) != fs::file_size(other, error) || error) return false;
  std::ifstream a(one, std::ios::binary), b(other, std::ios::binary);
  return std::equal(std::istreambuf_iterator<char>(a), {}, std::istreambuf_iterator<char>(b)) && a && b;
}

}  // namespace

const Installation& installation() {
  static const Installation kSystem{GCL_PG_BINDIR, GCL_PG_PKGLIBDIR, GCL_PG_SHAREDIR};
  return kSystem;
}

fs::path mirrored(const fs::path& prefix, const fs::path& path) {
  return prefix / path.lexically_relative(common_parent());
}

ExtensionFiles open_extension() {
  const fs::path program = fs::read_symlink("/proc/self/exe");
  fs::path root = program.parent_path().parent_path();
  fs::path library = root / "lib" / "gcl.so", scripts = root / "share" / "gcl";
  if (!fs::exists(library))
    library = installation().pkglibdir / "gcl.so", scripts = installation().sharedir / "extension";
  if (!fs::exists(library)) fail("gcl.so is neither in {} nor in {}", (root / "lib").string(), library.string());
  ExtensionFiles files{{}, open_file(library), {}};
  for (const char* name : {"gclctl", "gcl_memnode"}) files.programs.push_back(open_file(program.parent_path() / name));
  for (const auto& entry : fs::directory_iterator(scripts)) {
    const std::string name = entry.path().filename();
    if (name == "gcl.control" || (name.starts_with("gcl--") && name.ends_with(".sql")))
      files.scripts.push_back(open_file(entry.path()));
  }
  if (files.scripts.size() < 2) fail("gcl.control and its script are not in {}", scripts.string());
  return files;
}

void make_prefix(const fs::path& prefix, const ExtensionFiles& extension) {
  const Installation& at = installation();
  if (!fs::exists(at.bindir / "initdb")) fail("no PostgreSQL 15 server in {}", at.bindir.string());
  fs::path bin = mirrored(prefix, at.bindir), lib = mirrored(prefix, at.pkglibdir),
           share = mirrored(prefix, at.sharedir);
  link_entries(at.bindir, bin, "postgres");
  fs::copy_file(at.bindir / "postgres", bin / "postgres");
  link_entries(at.pkglibdir, lib, "");
  link_entries(at.sharedir, share, "extension");
  link_entries(at.sharedir / "extension", share / "extension", "");
  for (const ExtensionFile& program : extension.programs) copy_to(program, bin / program.name);
  copy_to(extension.library, lib / extension.library.name);
  for (const ExtensionFile& script : extension.scripts) copy_to(script, share / "extension" / script.name);
}

bool same_software(const fs::path& one, const fs::path& other) {
  std::set<fs::path> files;  // that are copies in either
  for (const fs::path& prefix : {one, other})
    for (const auto& entry : fs::recursive_directory_iterator(prefix))
      if (!entry.is_symlink() && entry.is_regular_file()) files.insert(entry.path().lexically_relative(prefix));
  return std::all_of(files.begin(), files.end(),
                     [&](const fs::path& file) { return same_bytes(one / file, other / file); });
}

std::string software_in(const fs::path& prefix) {
  const int server = server_version(mirrored(prefix, installation().bindir));
  std::ifstream control(mirrored(prefix, installation().sharedir) / "extension" / "gcl.control");
  std::string extension = "of no version";
  for (std::string line; std::getline(control, line);)
    if (line.starts_with("default_version"))
      if (const size_t from = line.find('\'') + 1; from != 0) extension = line.substr(from, line.rfind('\'') - from);
  return fmt::format("PostgreSQL {}.{}, gcl {}", server / 10000, server % 10000, extension);
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

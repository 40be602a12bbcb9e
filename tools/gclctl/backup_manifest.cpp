#include "tools/gclctl/backup_manifest.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>
#include <sstream>

#include "coherence/base/crc32c.hpp"
#include "coherence/pool/pool.hpp"
#include "coherence/region/damage.hpp"
#include "coherence/region/saved_file.hpp"
#include "tools/gclctl/cut.hpp"
#include "tools/gclctl/directory.hpp"
#include "tools/gclctl/failure.hpp"
#include "tools/gclctl/prefix.hpp"
#include "tools/gclctl/process.hpp"
#include "tools/gclctl/text_file.hpp"

namespace gclctl {
namespace {

constexpr const char* kBackupWords = "# pg_gcl backup, format ";
constexpr const char* kBackupLine = "# pg_gcl backup, format 1; written by gclctl\n";
constexpr const char* kEnd = "end=";

std::string manifest_text(const BackupManifest& of) {
  std::string text =
      fmt::format("{}server={}\ntime={}\npool={:x}\nsaves={}\n", kBackupLine, of.server, of.time, of.pool_id, of.saves);
  for (const auto& [k, position] : of.cut) text += fmt::format("cut={} {}\n", k, text_of_position(position));
  for (const auto& [path, sum] : of.files) text += fmt::format("file={} {:08x} {}\n", sum.bytes, sum.crc32c, path);
  return text + fmt::format("{}{:08x}\n", kEnd, coherence::crc32c(0, text.data(), text.size()));
}

bool add_line(const std::string& line, BackupManifest* to) {
  const size_t equals = line.find('=');
  if (equals == std::string::npos) return false;
  const std::string key = line.substr(0, equals);
  std::istringstream value(line.substr(equals + 1));
  if (key == "server") return bool(value >> to->server);
  if (key == "pool") return bool(value >> std::hex >> to->pool_id);
  if (key == "saves") return bool(value >> to->saves);
  if (key == "time") return bool(std::getline(value, to->time));
  if (key == "cut") {
    int k;
    std::string position;
    if (!(value >> k >> position)) return false;
    to->cut[k] = position_in(position);
    return true;
  }
  FileSum sum;
  std::string path;
  if (key != "file" || !(value >> sum.bytes >> std::hex >> sum.crc32c >> std::ws) || !std::getline(value, path))
    return false;
  if (path.starts_with('/') || path.find("..") != std::string::npos) return false;  // it stays in the backup
  to->files[path] = sum;
  return true;
}

// PostgreSQL's manifest says nothing of pg_wal, which is in ours.
void check_base_backup(const fs::path& data) {
  output_of({(installation().bindir / "pg_verifybackup").string(), "--no-parse-wal", "--quiet", data.string()});
}

void check_copy(const fs::path& saved) {
  const auto damage = std::make_unique<coherence::Damage>();
  coherence::Problem problem;
  if (!coherence::verify_saved(saved.c_str(), damage.get(), &problem)) fail("{}", problem.text);
}

}  // namespace

void BackupManifest::write(const fs::path& backup, const char* name) const {
  write_text(backup / name, manifest_text(*this));
}

void BackupManifest::require(const fs::path& backup) {
  if (!fs::exists(backup / kFileName))
    fail("{} is no whole backup: there is no {} in it, which gclctl backup writes last", backup.string(), kFileName);
}

BackupManifest BackupManifest::read(const fs::path& backup, const char* name) {
  const fs::path path = backup / name;
  const std::string text = read_text(path);
  const size_t end = text.rfind(kEnd);
  if (!text.starts_with(kBackupLine) && text.starts_with(kBackupWords))
    fail("{} has format {}, and format 1 is read here; a later version of gclctl wrote it: use that one", path.string(),
         std::atoi(text.c_str() + strlen(kBackupWords)));
  if (!text.starts_with(kBackupLine)) fail("{} is damaged", path.string());
  if (end == std::string::npos ||
      text.substr(end) != fmt::format("{}{:08x}\n", kEnd, coherence::crc32c(0, text.data(), end)))
    fail("{} is damaged", path.string());
  BackupManifest found;
  std::istringstream lines(text.substr(0, end));
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line))
    if (!add_line(line, &found)) fail("{}: \"{}\" makes no sense", path.string(), line);
  return found;
}

void check_files(const fs::path& backup, const BackupManifest& manifest) {
  for (const auto& [path, sum] : manifest.files) {
    if (!fs::exists(backup / path)) fail("{} is missing in the backup", path);
    if (const FileSum found = sum_of(backup / path); found != sum)
      fail("{} in the backup is damaged: it has {} bytes with checksum {:08x}, and had {} with {:08x}", path,
           found.bytes, found.crc32c, sum.bytes, sum.crc32c);
  }
}

void check_backup(const fs::path& backup, const BackupManifest& manifest) {
  check_files(backup, manifest);
  for (const auto& [k, position] : manifest.cut) check_base_backup(backup / fmt::format("node{}", k) / "data");
  check_copy(backup / "pool.saved");
}

}  // namespace gclctl

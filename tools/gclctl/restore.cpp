// gclctl restore: a new cluster out of a backup.  Its files are put where the machines of a cluster that has lost power
// have them; gclctl start does the rest (gclctl.restart-from-logs).
#include <fmt/format.h>

#include <optional>
#include <string>

#include "tools/gclctl/backup_manifest.hpp"
#include "tools/gclctl/checks.hpp"
#include "tools/gclctl/cluster.hpp"
#include "tools/gclctl/configuration.hpp"
#include "tools/gclctl/cut.hpp"
#include "tools/gclctl/directory.hpp"
#include "tools/gclctl/failure.hpp"
#include "tools/gclctl/memory_node.hpp"
#include "tools/gclctl/new_cluster.hpp"
#include "tools/gclctl/point_rings.hpp"
#include "tools/gclctl/pool.hpp"
#include "tools/gclctl/prefix.hpp"
#include "tools/gclctl/process.hpp"
#include "tools/gclctl/restore_point.hpp"
#include "tools/gclctl/text_file.hpp"
#include "tools/gclctl/verbs.hpp"
#include "tools/gclctl/wal.hpp"

namespace gclctl {
namespace {

// What the cluster was that the backup is of, in its new place.
Cluster describe(const fs::path& backup, const RestoreOptions& options) {
  const Cluster was = Cluster::load(backup, BackupManifest::kClusterFile);
  const std::string memory_dir = options.memory_dir.empty() ? was.memory_dir.string() : options.memory_dir;
  Cluster c = describe_new({options.dir, memory_dir, options.port == 0 ? was.port : options.port});
  c.primaries = was.primaries;
  c.removed = was.removed;
  c.cache_bytes = was.cache_bytes;
  c.locale = was.locale;
  c.transport = was.transport;
  c.rdma_device = was.rdma_device;
  c.patience_s = was.patience_s;
  c.memory_port = c.over_tcp() ? c.port + (was.memory_port - was.port) : 0;
  return c;
}

// A base backup joins no pool but as what we have made of it (runtime.copies-stay-out).
void mark_restored(const fs::path& data) { write_text(data / "gcl_ddl" / "restored", ""); }

// It is another cluster, whatever was set in the one that the backup is of (gclctl.restored-is-another,
// gclctl.own-settings-count).
void configure(const Cluster& c, int k) {
  Settings values = memory_node_settings(c, 1);
  values.merge(Settings{{"gcl.pool", quoted_setting(c.pool().string())},
                        {"gcl.pool_file", quoted_setting(c.saved_pool().string())},
                        {"gcl.checkpoint_command", quoted_setting(checkpoint_command(c))},
                        {"port", std::to_string(c.port_of(k))},
                        {"unix_socket_directories", quoted_setting(c.socket_dir.string())}});
  rewrite_configuration(c.data(k), values);
  overrule_configuration(c.data(k), {{"archive_mode", "off"}});
}

void copy_tree(const fs::path& from, const fs::path& to) {
  fs::create_directories(to.parent_path());
  fs::copy(from, to, fs::copy_options::recursive | fs::copy_options::copy_symlinks);
}

uint64_t pool_bytes(const BackupManifest& manifest) {
  uint64_t bytes = 0;
  for (const auto& [path, sum] : manifest.files)
    if (path == "pool.saved" || path.starts_with("pool.saved.mem")) bytes += sum.bytes;
  return bytes;
}

// What is not there would be missed without a word: a server takes the first record that makes no sense for the end.
void require_wal_upto(uint64_t cut, int k, const fs::path& data) {
  const uint64_t end = visit_wal(data, [](const WalRecord&) {});
  if (end != cut)
    fail("the WAL of primary {} goes to {}, and was to go to {}", k, text_of_position(end), text_of_position(cut));
}

int fill(const Cluster& c, const ExtensionFiles& extension, const fs::path& backup, const RestoreOptions& options) {
  const BackupManifest manifest = BackupManifest::read(backup);
  std::optional<RestorePoint> point;
  if (!options.archive.empty()) point = find_point(options.archive, manifest, options.upto);
  const BackupManifest& state = point ? point->what : manifest;
  check_memory(c, int(manifest.cut.size()), pool_bytes(manifest));
  check_backup(backup, manifest);
  make_private_directory(c.socket_dir);
  make_prefix(c.prefix(), extension);
  if (const int here = server_version(mirrored(c.prefix(), installation().bindir));
      here / 10000 != manifest.server / 10000)
    fail("the backup is of PostgreSQL {}, and here is {}: its primaries' data directories are for that version only",
         manifest.server / 10000, here / 10000);
  for (const auto& [k, position] : manifest.cut) {
    fmt::print("primary {}: data directory\n", k);
    fflush(stdout);
    copy_tree(backup / fmt::format("node{}", k) / "data", c.data(k));
    configure(c, k);
    if (point) place_archived_wal(*point, k, position, c.data(k));
    require_wal_upto(state.cut.at(k), k, c.data(k));
    mark_restored(c.data(k));
  }
  for (const auto& [path, sum] : manifest.files) {
    const fs::path first = *fs::path(path).begin();
    if (!first.string().starts_with("pool.saved") && !first.string().starts_with("removed")) continue;
    fs::create_directories((c.dir / path).parent_path());
    const bool later = point && point->what.files.contains(path);  // the journal
    (void)copy_summed((later ? point->dir : backup) / path, c.dir / path);
  }
  if (point) put_back_rings(c.saved_pool(), point->what, point->dir.parent_path());
  make_cluster_key(c);
  make_pool_dir(c);
  sync_file_system(c.dir);
  c.save();
  fmt::print("cluster of {} primaries in {}, as of {}; start it with: gclctl start {}\n", manifest.cut.size(),
             c.dir.string(), state.time, c.dir.string());
  return 0;
}

}  // namespace

// As root only what says which cluster it was is read here, as Cluster reads it.
int restore(const RestoreOptions& options) {
  const fs::path backup = fs::canonical(options.backup);
  BackupManifest::require(backup);
  RestoreOptions absolute = options;  // the account's process works in another directory
  if (!options.archive.empty()) absolute.archive = fs::absolute(options.archive);
  const Cluster c = describe(backup, options);
  return make_cluster(c, [&](const ExtensionFiles& extension) { return fill(c, extension, backup, absolute); });
}

}  // namespace gclctl

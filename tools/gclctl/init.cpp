// gclctl init: directory, private prefix, data directories, pool.
#include <sstream>

#include "extension/oid_range.hpp"
#include "tools/gclctl/checks.hpp"
#include "tools/gclctl/cluster.hpp"
#include "tools/gclctl/configuration.hpp"
#include "tools/gclctl/directory.hpp"
#include "tools/gclctl/failure.hpp"
#include "tools/gclctl/hosts.hpp"
#include "tools/gclctl/memory_node.hpp"
#include "tools/gclctl/new_cluster.hpp"
#include "tools/gclctl/pool.hpp"
#include "tools/gclctl/prefix.hpp"
#include "tools/gclctl/process.hpp"
#include "tools/gclctl/text_file.hpp"
#include "tools/gclctl/verbs.hpp"

namespace gclctl {
namespace {

constexpr uint64_t kPoolBytesMin = 64 << 20, kCacheBytesMin = 1 << 20;
constexpr const char* kLocale = "C.UTF-8";

Cluster describe(const InitOptions& options) {
  Cluster c = describe_new({options.dir, options.memory_dir, options.port});
  c.primaries = options.primaries;
  c.cache_bytes = parse_size(options.cache_size);
  c.locale = std::string("UTF8/") + kLocale;
  c.transport = options.transport;
  c.rdma_device = options.rdma_device;
  c.patience_s = options.patience_s;
  if (c.over_tcp()) c.memory_port = options.memory_port != 0 ? options.memory_port : options.port + kPrimariesMax;
  if (c.cache_bytes < kCacheBytesMin) fail("--cache-size must be at least {} MB", kCacheBytesMin >> 20);
  return c;
}

uint64_t pool_bytes_of(const InitOptions& options) {
  const uint64_t bytes = parse_size(options.pool_size);
  if (bytes < kPoolBytesMin) fail("--pool-size must be at least {} MB", kPoolBytesMin >> 20);
  if (bytes < kMemoryNodeBytesMin * uint64_t(options.memory_nodes))
    fail("--pool-size must be at least {} MB for each of {} memory nodes", kMemoryNodeBytesMin >> 20,
         options.memory_nodes);
  return bytes;
}

// NAME=VALUE, as a line of postgresql.conf.
std::string setting_line(const std::string& setting) {
  size_t equals = setting.find('=');
  if (equals == std::string::npos || equals == 0 || setting.find('\n') != std::string::npos)
    fail("--set {}: write NAME=VALUE", setting);
  return setting.substr(0, equals) + " = " + quoted_setting(setting.substr(equals + 1)) + "\n";
}

void write_configuration(const Cluster& c, int k, const std::vector<std::string>& settings) {
  append_text(c.data(k) / "postgresql.conf", "\ninclude 'gcl.conf'\n");
  std::ostringstream out;
  out << "# Written by gclctl init; put your own settings behind these.\n"
      << "shared_preload_libraries = 'gcl'\n"
      << "gcl.node_id = " << k << "\ngcl.primaries = " << c.primaries
      << "\ngcl.pool = " << quoted_setting(c.pool().string())
      << "\ngcl.pool_file = " << quoted_setting(c.saved_pool().string()) << "\ngcl.cache_size = '"
      << size_setting(c.cache_bytes) << "'\ngcl.locale = '" << c.locale
      << "'\n"
      // A checkpoint reads the logs of all primaries, and those of other hosts are not here.
      << "gcl.checkpoint_command = " << quoted_setting(c.on_hosts() ? "" : checkpoint_command(c)) << "\n"
      << "wal_level = replica\nmax_slot_wal_keep_size = -1\nold_snapshot_threshold = -1\n"
      << "max_prepared_transactions = 0\nmax_worker_processes = 48\n"
      << "port = " << c.port_of(k)
      << "\nlisten_addresses = 'localhost'\nunix_socket_directories = " << quoted_setting(c.socket_dir.string())
      << "\nunix_socket_permissions = 0700\n"
      << "shared_buffers = 64MB\nmax_connections = 100\ncluster_name = 'gcl" << k
      << "'\n"
      // Pages of the pool are in memory, where one costs what the next one does.  As for a disk, the planner would read
      // all of a small table that is looked up by its key.
      << "random_page_cost = 1\n"
      << "log_line_prefix = '%m [%p] %b '\n";
  for (const auto& [name, value] : memory_node_settings(c, k)) out << name << " = " << value << "\n";
  for (const std::string& setting : settings) out << setting_line(setting);
  write_text(c.data(k) / "gcl.conf", out.str());
}

// Connections over the socket are trusted: its directory is closed to others.  Over TCP a password is needed, and no
// role has one until it is set.
void write_access_rules(const Cluster& c, int k) {
  write_text(c.data(k) / "pg_hba.conf",
             "local all all trust\nlocal replication all trust\n"
             "host all all 127.0.0.1/32 scram-sha-256\nhost all all ::1/128 scram-sha-256\n");
}

void make_data_directory(const Cluster& c, int k, const std::string& from) {
  const fs::path data = c.data(k);
  fs::create_directories(data.parent_path());
  if (from.empty()) {
    output_of({(c.bindir(k) / "initdb").string(), "-D", data.string(), "-U", "postgres", "-E", "UTF8",
               std::string("--locale=") + kLocale, "-A", "trust"});
  } else {
    if (!fs::exists(fs::path(from) / "PG_VERSION")) fail("--data-from {}: that is no data directory", from);
    fs::copy(from, data, fs::copy_options::recursive);
  }
}

// What a part of several hosts is a part of; and the pool, once, where memory node 0 is.
void fill_part(const Cluster& c, const InitOptions& options) {
  write_text(c.dir / Plan::kFileName, options.plan_text);
  provide_key(c);
  make_pool_dir(c);
  if (!c.has_first_memory_node()) return;
  if (fs::exists(c.saved_pool()))
    fail("{} is there already: it is another pool's, and this host would make a new one", c.saved_pool().string());
  create_pool(c, c.plan->memory_nodes[0].bytes, 1, options.fence_on_death ? AfterDeath::kFence : AfterDeath::kRepair);
}

int fill(const Cluster& c, const ExtensionFiles& extension, const InitOptions& options) {
  make_private_directory(c.socket_dir);
  make_prefix(c.prefix(), extension);
  for (int k : c.chosen(0)) {
    fmt::print("primary {}: data directory\n", k);
    fflush(stdout);
    make_data_directory(c, k, options.data_from);
    output_of({(c.bindir(k) / "pg_resetwal").string(), "-o", std::to_string(gcl::oids_of_node(k).first), "-D",
               c.data(k).string()});
    write_configuration(c, k, options.settings);
    write_access_rules(c, k);
  }
  if (c.on_hosts()) {
    fill_part(c, options);
  } else {
    make_cluster_key(c);
    make_pool_dir(c);
    create_pool(c, pool_bytes_of(options), options.memory_nodes,
                options.fence_on_death ? AfterDeath::kFence : AfterDeath::kRepair);
  }
  sync_file_system(c.dir);
  c.save();
  return 0;
}

Cluster describe_part(const InitOptions& options) {
  Cluster c = describe_new({options.dir, options.memory_dir, options.port});
  c.plan = std::make_shared<const Plan>(Plan::parse(options.plan_text, options.plan));
  c.plan->check_host(options.host);
  c.host = options.host;
  c.primaries = c.plan->highest_primary();
  c.cache_bytes = c.plan->cache_bytes;
  c.locale = std::string("UTF8/") + kLocale;
  c.transport = c.plan->transport;
  return c;
}

// gclctl.one-file-for-all-hosts
int init_part(const InitOptions& options) {
  const Cluster c = describe_part(options);
  for (const std::string& setting : options.settings) (void)setting_line(setting);
  const std::vector<int> here = c.chosen(0);
  check_memory(c, int(here.size()), planned_bytes(c));
  if (const int code = make_cluster(c, [&](const ExtensionFiles& extension) { return fill(c, extension, options); });
      code != 0)
    return code;
  fmt::print("the part of host {} is in {}; start it with: gclctl start {}\n", c.host, c.dir.string(), options.dir);
  return 0;
}

}  // namespace

int init(const InitOptions& options) {
  if (!options.plan.empty()) return init_part(options);
  const uint64_t pool_bytes = pool_bytes_of(options);
  const Cluster c = describe(options);
  for (const std::string& setting : options.settings) (void)setting_line(setting);
  check_memory(c, c.primaries, pool_bytes);
  const int code = make_cluster(c, [&](const ExtensionFiles& extension) { return fill(c, extension, options); });
  if (code != 0) return code;
  fmt::print("cluster of {} primaries in {}; start it with: gclctl start {}\n", c.primaries, c.dir.string(),
             options.dir);
  return 0;
}

}  // namespace gclctl

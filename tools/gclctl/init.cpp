// gclctl init: directory, private prefix, data directories, pool.
#include <fstream>
#include <random>

#include "extension/oid_range.hpp"
#include "tools/gclctl/checks.hpp"
#include "tools/gclctl/cluster.hpp"
#include "tools/gclctl/directory.hpp"
#include "tools/gclctl/failure.hpp"
#include "tools/gclctl/pool.hpp"
#include "tools/gclctl/prefix.hpp"
#include "tools/gclctl/process.hpp"
#include "tools/gclctl/verbs.hpp"

namespace gclctl {
namespace {

constexpr uint64_t kPoolBytesMin = 64 << 20, kCacheBytesMin = 1 << 20;
constexpr size_t kSocketPathMax = 107;
constexpr const char* kLocale = "C.UTF-8";

std::string random_id() {
  std::random_device random;
  return fmt::format("{:08x}", random());
}

Cluster describe(const InitOptions& options) {
  Cluster c;
  c.dir = fs::weakly_canonical(fs::absolute(options.dir));
  c.id = random_id();
  c.account = account_for(c.dir);
  c.primaries = options.primaries;
  c.port = options.port;
  c.cache_bytes = parse_size(options.cache_size);
  c.memory_dir = fs::absolute(options.memory_dir);
  c.locale = std::string("UTF8/") + kLocale;
  c.socket_dir = c.dir / "run";
  if ((c.socket_dir / ".s.PGSQL.65535.lock").string().size() > kSocketPathMax) c.socket_dir = "/tmp/gcl-" + c.id;
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

// As postgresql.conf wants it.
std::string quoted(const std::string& text) {
  std::string out = "'";
  for (char c : text) out += c == '\'' ? "''" : c == '\\' ? "\\\\" : std::string(1, c);
  return out + "'";
}

// NAME=VALUE, as a line of postgresql.conf.
std::string setting_line(const std::string& setting) {
  size_t equals = setting.find('=');
  if (equals == std::string::npos || equals == 0 || setting.find('\n') != std::string::npos)
    fail("--set {}: write NAME=VALUE", setting);
  return setting.substr(0, equals) + " = " + quoted(setting.substr(equals + 1)) + "\n";
}

void write_configuration(const Cluster& c, int k, const std::vector<std::string>& settings) {
  std::ofstream main_file(c.data(k) / "postgresql.conf", std::ios::app);
  main_file << "\ninclude 'gcl.conf'\n";
  std::ofstream out(c.data(k) / "gcl.conf");
  out << "# Written by gclctl init; put your own settings behind these.\n"
      << "shared_preload_libraries = 'gcl'\n"
      << "gcl.node_id = " << k << "\ngcl.primaries = " << c.primaries << "\ngcl.pool = " << quoted(c.pool().string())
      << "\ngcl.pool_file = " << quoted(c.saved_pool().string()) << "\ngcl.cache_size = '"
      << size_setting(c.cache_bytes) << "'\ngcl.locale = '" << c.locale << "'\n"
      << "wal_level = replica\nmax_slot_wal_keep_size = -1\nold_snapshot_threshold = -1\n"
      << "max_prepared_transactions = 0\nmax_worker_processes = 48\n"
      << "port = " << c.port_of(k)
      << "\nlisten_addresses = 'localhost'\nunix_socket_directories = " << quoted(c.socket_dir.string())
      << "\nunix_socket_permissions = 0700\n"
      << "shared_buffers = 64MB\nmax_connections = 100\ncluster_name = 'gcl" << k << "'\n"
      << "log_line_prefix = '%m [%p] %b '\n";
  for (const std::string& setting : settings) out << setting_line(setting);
  out.flush();
  if (!main_file.flush() || !out) fail("cannot write the configuration of primary {}", k);
}

// Connections over the socket are trusted: its directory is closed to others.  Over TCP a password is needed, and no
// role has one until it is set.
void write_access_rules(const Cluster& c, int k) {
  std::ofstream out(c.data(k) / "pg_hba.conf");
  out << "local all all trust\nlocal replication all trust\n"
      << "host all all 127.0.0.1/32 scram-sha-256\nhost all all ::1/128 scram-sha-256\n";
  if (!out.flush()) fail("cannot write the access rules of primary {}", k);
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
  make_pool_dir(c);
  create_pool(c, pool_bytes_of(options), options.memory_nodes,
              options.fence_on_death ? AfterDeath::kFence : AfterDeath::kRepair);
  sync_file_system(c.dir);
  c.save();
  return 0;
}

// A failed `init` leaves nothing behind.
int empty(const Cluster& c) {
  std::error_code ignored;
  fs::remove_all(c.pool_dir(), ignored);
  if (c.socket_dir.parent_path() != c.dir) fs::remove_all(c.socket_dir, ignored);
  for (const auto& entry : fs::directory_iterator(c.dir)) fs::remove_all(entry.path(), ignored);
  return 0;
}

}  // namespace

int init(const InitOptions& options) {
  const uint64_t pool_bytes = pool_bytes_of(options);
  Cluster c = describe(options);
  if (fs::exists(c.dir) && (!fs::is_directory(c.dir) || !fs::is_empty(c.dir)))
    fail("{} is there and is not empty: init wants a new directory", c.dir.string());
  for (const std::string& setting : options.settings) (void)setting_line(setting);
  for (int k : c.chosen(0)) check_port_free(c, k);
  check_memory(c, c.primaries, pool_bytes);
  check_reachable(c.account, c.dir.parent_path());
  const ExtensionFiles extension = open_extension();
  const bool made = take_directory(c.dir, c.account);
  int code = 1;
  std::string problem;
  try {
    code = run_as(c.account, [&] { return fill(c, extension, options); });
  } catch (const std::exception& e) {
    problem = text_of(e);
  }
  if (code != 0) {
    (void)run_as(c.account, [&] { return empty(c); });
    std::error_code ignored;
    if (made) fs::remove(c.dir, ignored);
    if (!problem.empty()) throw Failure(problem);
    return code;
  }
  fmt::print("cluster of {} primaries in {}; start it with: gclctl start {}\n", c.primaries, c.dir.string(),
             options.dir);
  return 0;
}

}  // namespace gclctl

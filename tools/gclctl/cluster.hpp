// Cluster: what DIR/cluster.conf says, and where everything of a cluster lies.
//
//   DIR/cluster.conf     this description; its first line makes the directory ours
//   DIR/prefix/          a private installation of PostgreSQL with the extension in it
//   DIR/prefix.<N>/      those of `gclctl upgrade`; DIR/node<K>/prefix leads to that of primary K, if it has one
//   DIR/node<K>/data     the data directory of primary K (1..N); DIR/node<K>/log its server log.  Both may be there of
//                        one that was removed
//   DIR/node<K>/upgrade  while `gclctl upgrade` has stopped that primary (upgrade_note.hpp)
//   DIR/memory0/         of a cluster over tcp: log and process number of its memory node; DIR/cluster.key: its key
//   DIR/pool.saved*      the pool, when the cluster is stopped: a file per memory node
//   DIR/run              sockets, unless the path is too long for one: then /tmp/gcl-<id>
//   /dev/shm/gcl-<id>/   the pool and the primaries' frames, while the machine is up
//
// Of a cluster of several hosts DIR is one host's part, with what Plan says of that host: its primaries and memory
// nodes. DIR/cluster.toml is the plan, as it was when the part was made; key and saved pool lie where it says.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tools/gclctl/plan.hpp"

namespace gclctl {

namespace fs = std::filesystem;

constexpr int kPrimariesMax = 32;
constexpr uint64_t kSizeMax = uint64_t{1} << 46;  // 64 TB

struct Cluster {
  static constexpr const char* kFileName = "cluster.conf";
  static constexpr const char* kUnfinished = "cluster.conf.new";  // of a cluster that is being made, or the next one

  fs::path dir;  // absolute
  std::string id;
  std::string account;             // the operating system user that runs it: the directory's owner
  int primaries = 0;               // they have the numbers 1 to this one,
  std::set<int> removed;           // without these
  int port = 0;                    // of primary 1; primary K listens on port + K - 1
  uint64_t cache_bytes = 0;        // per primary
  fs::path memory_dir;             // tmpfs; holds the directory of the pool
  std::string transport = "shm";   // how primaries reach the pool: shm, tcp, verbs
  int memory_port = 0;             // of tcp and verbs: of the memory node, on this machine
  std::string rdma_device;         // of verbs; empty: the only one
  int patience_s = kPatienceMinS;  // of tcp and verbs: how long a primary may be silent before it counts as dead
  fs::path socket_dir;
  std::string locale;
  std::string host;                  // of several hosts: whose part this is
  std::shared_ptr<const Plan> plan;  // and of what; null: all is on this machine

  // Reads DIR/cluster.conf; fails with a plain message when DIR is not a cluster's directory, or the file is damaged.
  // `name`: of another such file, in a backup.
  static Cluster load(const fs::path& dir, const char* name = kFileName);
  void save() const;   // whole or not at all
  void begin() const;  // so that destroy finds all of it where the command that makes it is killed before it saves

  fs::path prefix() const { return dir / "prefix"; }
  fs::path prefix(int k) const;  // of primary K (gclctl.software-per-primary)
  fs::path bindir(int k) const;  // there
  // Primary K has this prefix from its next start on.
  void use_prefix(int k, const fs::path& prefix) const;
  fs::path data(int k) const { return dir / fmt_node(k) / "data"; }
  fs::path log(int k) const { return dir / fmt_node(k) / "log"; }
  fs::path pool_dir() const { return memory_dir / ("gcl-" + id); }
  fs::path pool() const { return pool_dir() / "pool"; }
  fs::path saved_pool() const { return plan ? fs::path(plan->saved) : dir / "pool.saved"; }
  int port_of(int k) const { return plan ? plan->primary(k)->port : port + k - 1; }
  std::chrono::seconds patience() const { return std::chrono::seconds(plan ? plan->patience_s : patience_s); }
  fs::path socket(int k) const { return socket_dir / (".s.PGSQL." + std::to_string(port_of(k))); }
  std::string dsn(int k) const;
  // The same for gclctl's own questions, which are not to hang.
  std::string impatient_dsn(int k) const { return dsn(k) + " connect_timeout=3"; }
  // Those that there are or were; of several hosts: here.
  std::vector<int> numbers() const;
  // Fails if there never was one of that number.
  void check_number(int node) const;
  // The primaries a command speaks of: all, or the one the user named.  Fails if that was removed.
  std::vector<int> chosen(int node) const;
  // Of a data directory that was moved, and that a link leads to: what is in there, and the directory if it may go.
  void remove_moved_data(int k) const;
  // The postmaster of primary K, or 0 when it does not run.
  int postmaster(int k) const;
  bool any_runs() const;
  bool over_verbs() const { return transport == "verbs"; }
  bool over_tcp() const { return transport == "tcp" || over_verbs(); }  // members and messages, at least
  bool on_hosts() const { return plan != nullptr; }
  // The file of memory node 0 is here.
  bool has_first_memory_node() const { return !plan || plan->memory_nodes[0].host == host; }
  // Memory nodes that are another host's have no daemon here.
  bool has_memory_node(uint32_t k) const {
    return !plan || (k < plan->memory_nodes.size() && plan->memory_nodes[k].host == host);
  }
  // Of a primary that is here, if there is one.
  fs::path any_bindir() const;
  // Fails for a part of several hosts.
  void require_one_machine(const std::string& verb) const;

 private:
  static std::string fmt_node(int k) { return "node" + std::to_string(k); }
};

// The postmaster that runs on a data directory, or 0.
//
// gclctl.runs-where-it-works: The number in postmaster.pid may be another process's by now. The postmaster is a process
//     of this account that works in the data directory, by whatever path that is reached. Another account's is none: it
//     cannot be told where that works, and PostgreSQL's own start does not take it for one either.
int postmaster_of(const fs::path& data);

// As a connection string wants a value: in quotes where it needs them.
std::string conninfo_value(const std::string& value);

// "1GB", "256MB", "4096kB" in bytes; fails on anything else.
uint64_t parse_size(const std::string& text);
// The other way, in whole kB, as PostgreSQL's settings take it.
std::string size_setting(uint64_t bytes);
// In whole MB, rounded up, for messages.
inline uint64_t megabytes(uint64_t bytes) { return (bytes + (1 << 20) - 1) >> 20; }

}  // namespace gclctl

// The verbs of gclctl, one file each.  They return the exit code and throw Failure.
#pragma once

#include <string>
#include <vector>

#include "tools/gclctl/plan.hpp"

namespace gclctl {

struct InitOptions {
  std::string dir;
  int primaries = 0;
  int port = 15432;
  int memory_nodes = 1;
  std::string pool_size = "1GB", cache_size = "256MB", memory_dir = "/dev/shm";
  std::vector<std::string> settings;  // NAME=VALUE, for every primary's configuration
  std::string data_from;              // copied instead of what initdb makes, if not empty
  bool fence_on_death = false;        // a primary's death ends all access to the pool, instead of being repaired
  std::string transport = "shm";      // how primaries reach the pool
  int memory_port = 0;                // of tcp and verbs; 0: behind the primaries' ports
  std::string rdma_device;            // of verbs
  int patience_s = kPatienceMinS;     // of tcp and verbs
  // Of several hosts: the file that says what there is, its text, and which host this is.  Then the file says how many
  // primaries there are, how large all is, and where they are.
  std::string plan, plan_text, host;
};

struct CheckOptions {
  std::string where;  // a plan's file, or the directory of a part
  std::string host;   // empty: what is only true of some host is not looked at
};

struct MakePoolOptions {
  std::string file, saved;  // in tmpfs; on disk
  int primaries = 0;
  int memory_nodes = 1;
  std::string size = "1GB", locale = "UTF8/C.UTF-8";
  bool fence_on_death = false;  // as InitOptions
};

struct RestoreOptions {
  std::string backup, dir;
  std::string memory_dir;  // empty: that of the cluster that the backup is of
  std::string archive;     // empty: the cluster as of the backup; else as of the last restore point there,
  std::string upto;        // at or before that time, if not empty
  int port = 0;            // likewise 0
};

struct RestartPoolOptions {       // of checkpoint-pool, too
  std::string file, saved;        // as MakePoolOptions
  std::vector<std::string> data;  // K=DIRECTORY of each server
};

// What of a pool is looked at, and of which pool: a cluster's directory, or the file of a pool.
struct InspectOptions {
  std::string kind, where;
  std::string page;
  int node = -1;  // -1: all
  int line = -1;  // -1: all that are not at rest
  int last = 10;  // records
  std::vector<std::string> ids;
};
struct TraceOptions {
  std::string where;
  std::string page;  // empty: all
  int node = -1, session = -1;
  int last = 200;
};

int make_pool(const MakePoolOptions& options);
int restart_pool(const RestartPoolOptions& options);
int checkpoint_pool(const RestartPoolOptions& options);
int checkpoint(const std::string& dir);  // of a cluster
int init(const InitOptions& options);
int start(const std::string& dir, int node);  // node 0: all
int stop(const std::string& dir, int node, bool immediate);
int upgrade(const std::string& dir, int node);
int status(const std::string& dir);
int check_network(const CheckOptions& options);
// `where`: the directory of a cluster; or, of a pool that make-pool has made, its file, and then where it is saved.
int add_memory(const std::string& where, const std::string& size, const std::string& saved);
int add_primary(const std::string& dir, int node);  // node 0: one more; else this one anew
enum class Data { kKeep, kDelete };
int remove_primary(const std::string& dir, int node, Data data);
int dsn(const std::string& dir, int node);
int psql(const std::string& dir, int node, const std::vector<std::string>& arguments);
int verify(const std::string& where);  // a cluster's directory, or a file that a pool is saved in
int backup(const std::string& dir, const std::string& to);
int verify_backup(const std::string& from);
int restore_point(const std::string& dir, const std::string& archive);
int restore(const RestoreOptions& options);
int inspect(const InspectOptions& options);
int trace(const TraceOptions& options);
int destroy(const std::string& dir);

}  // namespace gclctl

// The gcl.* settings (GUCs), all but local_administration of the postmaster's start; defined in settings.cpp.
#pragma once

namespace gcl {

struct Settings {
  char* pool = nullptr;                  // gcl.pool: the pool's file in tmpfs; empty: this server takes part in no pool
  char* pool_file = nullptr;             // gcl.pool_file: where the pool is kept while no primary runs
  int transport = 0;                     // gcl.transport: 0 shm, 1 tcp, 2 verbs; what follows is of the last two
  char* memory_nodes = nullptr;          // gcl.memory_nodes: where they are
  char* listen_address = nullptr;        // gcl.listen_address: where other primaries reach this one
  char* key_file = nullptr;              // gcl.key_file, or the next three: what shows that it belongs to the cluster
  char* certificate_file = nullptr;      // gcl.certificate_file
  char* certificate_key_file = nullptr;  // gcl.certificate_key_file
  char* ca_file = nullptr;               // gcl.ca_file
  char* rdma_device = nullptr;           // gcl.rdma_device, _port, _gid_index, of verbs; empty, 0, -1: found
  int rdma_port = 0;
  int rdma_gid_index = -1;
  char* locale = nullptr;              // gcl.locale: encoding/locale of every database with gcl tables
  int node_id = -1;                    // gcl.node_id; -1: not set
  int primaries = 0;                   // gcl.primaries: how many the cluster is made for
  int rejoin_timeout_s = 0;            // gcl.rejoin_timeout: how long a start waits for survivors
  char* checkpoint_command = nullptr;  // gcl.checkpoint_command: makes one; empty: there are none
  int checkpoint_timeout_s = 0;        // gcl.checkpoint_timeout; 0: there are none
  int checkpoint_wal_size_mb = 0;      // gcl.checkpoint_wal_size: of WAL that is kept, before one is made
  int max_page_holds = 0;              // gcl.max_page_holds: of one SERIALIZABLE transaction
  int hold_yield_ms = 0;               // gcl.hold_yield: how long an idle one may hold what others wait for
  int ddl_yield_ms = 0;                // gcl.ddl_yield: how long a DDL lock may be held idly that others wait for
  int cache_size_kb = 0;               // gcl.cache_size: frames for cached pages
  bool local_administration = false;   // gcl.local_administration: roles and databases, on this primary only
  bool stop_points = false;            // gcl.stop_points: processes may be made to stand still, for tests (engine/stop)
};
extern Settings settings;

// From _PG_init, before anything else of ours defines a gcl.* setting.
void define_settings();

}  // namespace gcl

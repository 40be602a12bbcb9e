// What a transport is told: as a server's settings, or a tool's options, say it.
#pragma once

namespace coherence {

struct TransportSettings {
  const char* kind = "shm";  // or "tcp", "verbs"
  // Of tcp and verbs:
  const char* memory_nodes = "";  // where memory node 0 is, which says where the others are: "m0:5555"
  const char* listen = "";        // where peers reach this node: host:port; with port 0 the system chooses one
  // What shows that this node belongs to the cluster; none: only on local addresses.
  const char* key_file = "";
  const char* certificate_file = "";
  const char* certificate_key_file = "";
  const char* ca_file = "";
  // Of verbs: the RDMA device; what is not said is found (verbs.gid-of-address).
  const char* device = "";
  int device_port = 0;
  int gid_index = -1;
  // In the process that has the node's sockets, once, before anything else; null: nothing.
  void (*worker_begins)() = nullptr;
};

}  // namespace coherence

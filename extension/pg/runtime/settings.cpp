#include "extension/pg/runtime/settings.hpp"

#include "coherence/base/ids.hpp"
#include "extension/engine/serializable/holder.hpp"
#include "extension/pg/boundary/pg.hpp"

extern "C" {
#include "mb/pg_wchar.h"
#include "utils/guc.h"
}

namespace gcl {

Settings settings;

namespace {

// A value in the configuration that is not accepted would be a warning, and the default in its place.
bool refuse(const char* name, const char* value, const char* detail) {
  if (process_shared_preload_libraries_in_progress)
    ereport(FATAL, errcode(ERRCODE_CONFIG_FILE_ERROR),
            errmsg("invalid value for parameter \"%s\": \"%s\"", name, value), errdetail("%s", detail));
  GUC_check_errdetail("%s", detail);
  return false;
}

// The server's working directory is its own data directory: a relative name would mean another file for each primary.
bool check_path(const char* name, const char* value) {
  if (*value == '\0' || is_absolute_path(value)) return true;
  return refuse(name, value, "It must be an absolute path.");
}
bool check_pool(char** value, void**, GucSource) { return check_path("gcl.pool", *value); }
bool check_pool_file(char** value, void**, GucSource) { return check_path("gcl.pool_file", *value); }

bool check_key_file(char** value, void**, GucSource) { return check_path("gcl.key_file", *value); }
bool check_certificate(char** value, void**, GucSource) { return check_path("gcl.certificate_file", *value); }
bool check_certificate_key(char** value, void**, GucSource) { return check_path("gcl.certificate_key_file", *value); }
bool check_ca(char** value, void**, GucSource) { return check_path("gcl.ca_file", *value); }

constexpr config_enum_entry kTransports[] = {
    {"shm", 0, false}, {"tcp", 1, false}, {"verbs", 2, false}, {nullptr, 0, false}};

bool check_locale(char** value, void**, GucSource) {
  const char* slash = strchr(*value, '/');
  if (slash != nullptr && slash[1] != '\0' && slash - *value < NAMEDATALEN && strpbrk(*value, "\n'\\") == nullptr) {
    char encoding[NAMEDATALEN] = "";
    memcpy(encoding, *value, size_t(slash - *value));
    if (PG_VALID_BE_ENCODING(pg_char_to_encoding(encoding))) return true;
  }
  return refuse("gcl.locale", *value, "It must be ENCODING/LOCALE, such as UTF8/C.UTF-8.");
}

}  // namespace

// How this primary reaches the pool and its peers (coherence/transport/settings.hpp).
static void define_transport() {
  DefineCustomEnumVariable(
      "gcl.transport", "How this primary reaches memory nodes and the other primaries.",
      "shm: all are on this machine, and map the pool; tcp: over a network; verbs: over a network, "
      "and memory nodes by RDMA.",
      &settings.transport, 0, kTransports, PGC_POSTMASTER, 0, nullptr, nullptr, nullptr);
  DefineCustomStringVariable("gcl.memory_nodes", "Address of memory node 0, which knows where the others are.",
                             "For gcl.transport = tcp and verbs: host:port.", &settings.memory_nodes, "",
                             PGC_POSTMASTER, 0, nullptr, nullptr, nullptr);
  DefineCustomStringVariable("gcl.listen_address", "Address where other primaries reach this one.",
                             "For gcl.transport = tcp and verbs: host:port; the system chooses for port 0.",
                             &settings.listen_address, "127.0.0.1:0", PGC_POSTMASTER, 0, nullptr, nullptr, nullptr);
  DefineCustomStringVariable("gcl.key_file", "File with the cluster's key, for gcl.transport = tcp and verbs.",
                             "Empty: certificates; without these only addresses of this machine.", &settings.key_file,
                             "", PGC_POSTMASTER, GUC_SUPERUSER_ONLY, check_key_file, nullptr, nullptr);
  DefineCustomStringVariable("gcl.certificate_file", "This primary's certificate, for gcl.transport = tcp and verbs.",
                             nullptr, &settings.certificate_file, "", PGC_POSTMASTER, GUC_SUPERUSER_ONLY,
                             check_certificate, nullptr, nullptr);
  DefineCustomStringVariable("gcl.certificate_key_file", "The private key of gcl.certificate_file.", nullptr,
                             &settings.certificate_key_file, "", PGC_POSTMASTER, GUC_SUPERUSER_ONLY,
                             check_certificate_key, nullptr, nullptr);
  DefineCustomStringVariable("gcl.ca_file", "Certificate of who signs for the members of the cluster.", nullptr,
                             &settings.ca_file, "", PGC_POSTMASTER, GUC_SUPERUSER_ONLY, check_ca, nullptr, nullptr);
  DefineCustomStringVariable("gcl.rdma_device", "RDMA device by which this primary reaches memory nodes.",
                             "For gcl.transport = verbs; empty: the one with the address of gcl.listen_address.",
                             &settings.rdma_device, "", PGC_POSTMASTER, 0, nullptr, nullptr, nullptr);
  DefineCustomIntVariable("gcl.rdma_port", "Port of that device.", "0: it is found.", &settings.rdma_port, 0, 0, 255,
                          PGC_POSTMASTER, 0, nullptr, nullptr, nullptr);
  DefineCustomIntVariable("gcl.rdma_gid_index", "Place in the GID table of that port.", "-1: it is found.",
                          &settings.rdma_gid_index, -1, -1, 1023, PGC_POSTMASTER, 0, nullptr, nullptr, nullptr);
}

void define_settings() {
  define_transport();
  DefineCustomStringVariable("gcl.pool", "File of the memory pool that this primary joins (in tmpfs).",
                             "Empty: the server takes part in no pool.", &settings.pool, "", PGC_POSTMASTER, 0,
                             check_pool, nullptr, nullptr);
  DefineCustomStringVariable("gcl.pool_file", "File that keeps the pool while no primary of the cluster runs.",
                             "The same for all primaries.", &settings.pool_file, "", PGC_POSTMASTER, 0, check_pool_file,
                             nullptr, nullptr);
  DefineCustomStringVariable("gcl.locale", "Encoding and locale of every database that uses the pool.",
                             "Written as ENCODING/LOCALE; the pool's, and a database's that differs is refused.",
                             &settings.locale, "UTF8/C.UTF-8", PGC_POSTMASTER, 0, check_locale, nullptr, nullptr);
  DefineCustomIntVariable("gcl.node_id", "Number of this primary in its pool.", "-1: not set.", &settings.node_id, -1,
                          -1, coherence::kNodesMax - 1, PGC_POSTMASTER, 0, nullptr, nullptr, nullptr);
  DefineCustomIntVariable("gcl.primaries", "How many primaries the cluster is made for.",
                          "What has been done by DDL is kept until primaries 1 to this one have come and done it, too.",
                          &settings.primaries, 1, 1, coherence::kNodesMax - 1, PGC_POSTMASTER, 0, nullptr, nullptr,
                          nullptr);
  DefineCustomIntVariable("gcl.cache_size", "Memory for this primary's copies of pool pages.", nullptr,
                          &settings.cache_size_kb, 128 * 1024, 1024, INT_MAX, PGC_POSTMASTER, GUC_UNIT_KB, nullptr,
                          nullptr, nullptr);
  DefineCustomIntVariable("gcl.max_page_holds", "How many pages one SERIALIZABLE transaction may hold until its end.",
                          "All of a primary hold half of gcl.cache_size at most.", &settings.max_page_holds, 4096, 16,
                          INT_MAX, PGC_SUSET, 0, nullptr, nullptr, nullptr);
  DefineCustomIntVariable(
      "gcl.hold_yield", "How long an idle SERIALIZABLE transaction may hold pages that others wait for.",
      "After that it may only read, or has to be run again; -1: it holds them until it ends.", &settings.hold_yield_ms,
      200, engine::kPatienceForever, INT_MAX, PGC_SUSET, GUC_UNIT_MS, nullptr, nullptr, nullptr);
  DefineCustomIntVariable(
      "gcl.ddl_yield", "How long a session that is idle in a transaction may hold a DDL lock that others wait for.",
      "After that the session is ended; -1: it holds the lock until its transaction ends.", &settings.ddl_yield_ms,
      30'000, -1, INT_MAX, PGC_SIGHUP, GUC_UNIT_MS, nullptr, nullptr, nullptr);
  DefineCustomIntVariable("gcl.rejoin_timeout",
                          "How long a start waits until the other primaries have repaired what this one had when it "
                          "died.",
                          "The server does not start if that takes longer.", &settings.rejoin_timeout_s, 60, 0,
                          INT_MAX / 1000, PGC_POSTMASTER, GUC_UNIT_S, nullptr, nullptr, nullptr);
  DefineCustomStringVariable("gcl.checkpoint_command", "Shell command that makes a checkpoint of the pool.",
                             "As gclctl checkpoint does; empty: none is made, and WAL is kept until the pool is saved.",
                             &settings.checkpoint_command, "", PGC_SIGHUP, GUC_SUPERUSER_ONLY, nullptr, nullptr,
                             nullptr);
  DefineCustomIntVariable("gcl.checkpoint_timeout",
                          "How old the pool's last checkpoint becomes until there is another.", "0: none is made.",
                          &settings.checkpoint_timeout_s, 300, 0, 86400, PGC_SIGHUP, GUC_UNIT_S, nullptr, nullptr,
                          nullptr);
  DefineCustomIntVariable("gcl.checkpoint_wal_size", "WAL that this primary keeps for the pool before a checkpoint.",
                          nullptr, &settings.checkpoint_wal_size_mb, 1024, 16, INT_MAX, PGC_SIGHUP, GUC_UNIT_MB,
                          nullptr, nullptr, nullptr);
  DefineCustomBoolVariable("gcl.local_administration", "Does statements on roles and databases on this primary only.",
                           "For repair: the other primaries then differ until the same is done there.",
                           &settings.local_administration, false, PGC_SUSET, 0, nullptr, nullptr, nullptr);
  DefineCustomBoolVariable("gcl.stop_points", "Lets superusers stop processes at named points, for tests of gcl.",
                           "A process that stands at such a point holds others up.", &settings.stop_points, false,
                           PGC_POSTMASTER, GUC_NOT_IN_SAMPLE, nullptr, nullptr, nullptr);
  MarkGUCPrefixReserved("gcl");  // a misspelt name is said to be one
}

}  // namespace gcl

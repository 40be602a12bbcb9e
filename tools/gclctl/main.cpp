// gclctl: makes, starts, stops and removes a cluster of primaries and their pool on this machine.
#include <unistd.h>

#include <CLI/CLI.hpp>

#include "coherence/base/ids.hpp"
#include "tools/gclctl/cluster.hpp"
#include "tools/gclctl/failure.hpp"
#include "tools/gclctl/verbs.hpp"

int main(int argc, char** argv) {
  using namespace gclctl;
  CLI::App app{"PostgreSQL primaries that share tables in a memory pool: a cluster on one machine."};
  app.require_subcommand(1);
  std::string dir;
  int node = 0;
  auto on_cluster = [&](const char* name, const char* help) {
    CLI::App* verb = app.add_subcommand(name, help);
    verb->add_option("DIR", dir, "the cluster's directory")->required();
    return verb;
  };

  InitOptions options;
  CLI::App* make = app.add_subcommand("init", "make a cluster in a new directory");
  make->add_option("DIR", options.dir, "a new directory")->required();
  CLI::Option* how_many = make->add_option("--primaries", options.primaries, "how many primaries")
                              ->take_last()
                              ->check(CLI::Range(1, kPrimariesMax));
  make->add_option("--pool-size", options.pool_size, "memory all primaries share")->capture_default_str()->take_last();
  make->add_option("--memory-nodes", options.memory_nodes, "parts of the pool, each a file of its own")
      ->capture_default_str()
      ->take_last()
      ->check(CLI::Range(1, coherence::kMemoryNodesMax));
  make->add_option("--cache-size", options.cache_size, "memory of each primary for its copies")
      ->capture_default_str()
      ->take_last();
  make->add_option("--port", options.port, "port of primary 1; the others follow")
      ->capture_default_str()
      ->take_last()
      ->check(CLI::Range(1024, 65000));
  make->add_option("--memory-dir", options.memory_dir, "tmpfs that holds the pool")->capture_default_str()->take_last();
  make->add_option(
      "--data-from", options.data_from,
      "copy this new data directory instead of calling initdb (for tests: all have its system identifier)");
  constexpr const char* kFenceHelp = "a primary's death ends all access to the pool, instead of being repaired";
  make->add_flag("--fence-on-death", options.fence_on_death, kFenceHelp);
  make->add_option("--transport", options.transport,
                   "how primaries reach the pool: shm (they map it), tcp, verbs (RDMA)")
      ->capture_default_str()
      ->take_last()
      ->check(CLI::IsMember({"shm", "tcp", "verbs"}));
  make->add_option("--memory-port", options.memory_port, "of tcp and verbs: port of the memory node")
      ->take_last()
      ->check(CLI::Range(1024, 65535));
  make->add_option("--rdma-device", options.rdma_device, "of verbs: the RDMA device, if there are several")
      ->take_last();
  make->add_option("--patience", options.patience_s,
                   "of tcp and verbs: seconds for which a primary may be silent before it counts as dead")
      ->capture_default_str()
      ->take_last()
      ->check(CLI::Range(kPatienceMinS, kPatienceMaxS));
  make->add_option("--set", options.settings, "NAME=VALUE for every primary's configuration; may be repeated");

  CLI::Option* of_plan =
      make->add_option("--cluster", options.plan, "of several hosts: the file cluster.toml, the same on all of them");
  CLI::Option* of_host = make->add_option("--host", options.host, "with --cluster: which of its hosts this is");
  of_plan->needs(of_host);
  of_host->needs(of_plan);
  for (const char* other : {"--primaries", "--pool-size", "--memory-nodes", "--cache-size", "--port", "--transport",
                            "--memory-port", "--patience"})
    of_plan->excludes(other);  // the file says it

  MakePoolOptions pool;
  CLI::App* empty = app.add_subcommand("make-pool", "make an empty pool for servers that gclctl does not run");
  empty->add_option("FILE", pool.file, "the pool, in tmpfs (gcl.pool)")->required();
  empty->add_option("--saved", pool.saved, "where it is kept while no server runs (gcl.pool_file)")->required();
  empty->add_option("--primaries", pool.primaries, "how many servers will join")
      ->required()
      ->check(CLI::Range(1, kPrimariesMax));
  empty->add_option("--size", pool.size, "memory all primaries share")->capture_default_str();
  empty
      ->add_option("--memory-nodes", pool.memory_nodes, "parts of the pool, each a file of its own: FILE, FILE.mem1...")
      ->capture_default_str()
      ->check(CLI::Range(1, coherence::kMemoryNodesMax));
  empty->add_flag("--fence-on-death", pool.fence_on_death, kFenceHelp);
  empty->add_option("--locale", pool.locale, "ENCODING/LOCALE of the servers' databases")->capture_default_str();

  RestartPoolOptions theirs;
  const auto on_pool = [&](const char* verb, const char* help) {
    CLI::App* one = app.add_subcommand(verb, help);
    one->add_option("FILE", theirs.file, "the pool, in tmpfs (gcl.pool)")->required();
    one->add_option("--saved", theirs.saved, "where it is kept while no server runs (gcl.pool_file)")->required();
    one->add_option("--data", theirs.data, "K=DIRECTORY, the data directory of server K; repeated, for all")
        ->required();
    return one;
  };
  CLI::App* again = on_pool("restart-pool", "make a pool again that memory has lost, for such servers");
  CLI::App* mark = on_pool("checkpoint-pool", "bring the copy of a pool in use up to date, for such servers");
  CLI::App* check = on_cluster("checkpoint", "bring the copy of the pool up to date, while the primaries run");

  CLI::App* run = on_cluster("start", "start all primaries, or one");
  run->add_option("--node", node, "only this primary")->check(CLI::PositiveNumber);
  CLI::App* halt = on_cluster("stop", "stop all primaries, or one; the last one saves the pool");
  halt->add_option("--node", node, "only this primary")->check(CLI::PositiveNumber);
  bool immediate = false;
  halt->add_flag("--immediate", immediate, "without leaving the pool: to the others, that is a death");
  CLI::App* renew = on_cluster("upgrade", "give the primaries the software of this gclctl, one after the other");
  renew->add_option("--node", node, "only this primary")->check(CLI::PositiveNumber);
  std::string where, size, saved;
  CLI::App* more = app.add_subcommand("add-memory", "add a memory node to the pool, while the primaries run or not");
  more->add_option("DIR", where, "the cluster's directory; or the FILE of a pool that make-pool made")->required();
  more->add_option("SIZE", size, "its memory, as 256MB")->required();
  more->add_option("--saved", saved, "with FILE: where that pool is kept while no server runs (gcl.pool_file)");
  CLI::App* another = on_cluster("add-primary", "make one primary more, from the data of one that runs");
  another->add_option("--node", node, "make this one again, whose data directory is lost")->check(CLI::PositiveNumber);
  CLI::App* less = on_cluster("remove-primary", "take one primary out of the cluster for good, while others run");
  less->add_option("--node", node, "this one")->required()->check(CLI::PositiveNumber);
  bool delete_data = false;
  less->add_flag("--delete-data", delete_data, "its data directory and its log, too, which are kept otherwise");
  CheckOptions network;
  CLI::App* check_all = app.add_subcommand("check", "what this machine sees of a cluster of several hosts");
  check_all->add_option("CLUSTER", network.where, "the file cluster.toml, or the directory of a host's part")
      ->required();
  check_all->add_option("--host", network.host, "with a file: also look at what is to be on this host, of that name");
  CLI::App* show = on_cluster("status", "what runs; exit code 0 if all do");
  CLI::App* name = on_cluster("dsn", "how to connect to primary K");
  name->add_option("K", node, "primary")->required()->check(CLI::PositiveNumber);
  CLI::App* shell = on_cluster("psql", "psql on primary K; what follows is given to psql");
  shell->add_option("K", node, "primary")->required()->check(CLI::PositiveNumber);
  shell->prefix_command();
  CLI::App* verify_verb = app.add_subcommand("verify", "check the checksums of the saved pool of a stopped cluster");
  verify_verb->add_option("POOL", where, "the cluster's directory, or the file that a pool is saved in")->required();
  std::string backup_dir;
  CLI::App* backup_verb = on_cluster("backup", "a copy of the cluster as it is at one moment, while all primaries run");
  backup_verb->add_option("BACKUP", backup_dir, "a new directory")->required();
  CLI::App* check_verb =
      app.add_subcommand("verify-backup", "check that all files of a backup are as they were written");
  check_verb->add_option("BACKUP", backup_dir, "the backup's directory")->required();
  std::string archive;
  CLI::App* point_verb = on_cluster("restore-point", "note a moment that archives of WAL can be restored to");
  point_verb->add_option("ARCHIVE", archive, "the directory with node1, node2... that the primaries archive to")
      ->required();
  RestoreOptions back;
  CLI::App* restore_verb = app.add_subcommand("restore", "make a new cluster out of a backup");
  restore_verb->add_option("BACKUP", back.backup, "the backup's directory")->required();
  restore_verb->add_option("DIR", back.dir, "a new directory, of the new cluster")->required();
  restore_verb->add_option("--port", back.port, "port of primary 1; the others follow (as before, if not given)")
      ->check(CLI::Range(1024, 65000));
  CLI::Option* from_archive =
      restore_verb->add_option("--archive", back.archive, "go on to the last restore point in this archive of WAL");
  restore_verb->add_option("--to", back.upto, "to the last one at or before this time, in UTC")->needs(from_archive);
  restore_verb->add_option("--memory-dir", back.memory_dir, "tmpfs that holds the pool (as before, if not given)");

  InspectOptions look;
  CLI::App* inspect_verb = app.add_subcommand("inspect", "what a pool has in memory, in words; of a dead cluster, too");
  inspect_verb->require_subcommand(1);
  const auto kind = [&](const char* what, const char* help) {
    CLI::App* one = inspect_verb->add_subcommand(what, help);
    one->add_option("POOL", look.where, "the cluster's directory, or the file of a pool")->required();
    one->callback([&look, what] { look.kind = what; });
    return one;
  };
  const auto of_node = [](CLI::App* one, int* to) {
    one->add_option("--node", *to, "only this node: primary K is node K")->check(CLI::NonNegativeNumber);
  };
  kind("pool", "who is in the pool, and its parts");
  CLI::App* of_page = kind("page", "a page: header, latch word, and each node's line of it");
  of_page->add_option("PAGE", look.page, "its number, as 42, or 2:42 of memory node 2")->required();
  CLI::App* of_line = kind("line", "a line of a node; without LINE all that are not at rest");
  of_line->add_option("LINE", look.line, "its index")->check(CLI::NonNegativeNumber);
  CLI::App* of_arena = kind("arena", "a node's sessions, requests and sums");
  CLI::App* of_ring = kind("ring", "a node's redo ring, and its last records");
  of_ring->add_option("--last", look.last, "how many records")->check(CLI::Range(0, 100000))->capture_default_str();
  for (CLI::App* one : {of_page, of_line, of_arena, of_ring}) of_node(one, &look.node);
  CLI::App* of_wal = inspect_verb->add_subcommand("wal", "the mini-transactions in the log of a primary");
  of_wal->add_option("DIR", look.where, "the cluster's directory")->required();
  of_wal->add_option("--node", look.node, "the primary")->required()->check(CLI::PositiveNumber);
  of_wal->add_option("--page", look.page, "only what changes this page, as 42, or 2:42 of memory node 2");
  of_wal->add_option("--last", look.last, "how many")->check(CLI::Range(0, 100000))->capture_default_str();
  of_wal->callback([&look] { look.kind = "wal"; });
  CLI::App* of_status = kind("status", "the status log: its marks, or the words of ids");
  of_status->add_option("ID", look.ids, "NODE:SEQUENCE, or the raw number");

  TraceOptions told;
  CLI::App* trace_verb = app.add_subcommand("trace", "what sessions did to pages last: the flight recorders");
  trace_verb->add_option("POOL", told.where, "the cluster's directory, or the file of a pool")->required();
  of_node(trace_verb, &told.node);
  trace_verb->add_option("--session", told.session, "only this session slot")->check(CLI::NonNegativeNumber);
  trace_verb->add_option("--page", told.page, "only this page, as 42, or 2:42 of memory node 2");
  trace_verb->add_option("--last", told.last, "how many events")
      ->check(CLI::Range(1, 100000000))
      ->capture_default_str();
  CLI::App* remove = on_cluster("destroy", "stop the cluster and remove everything of it");

  CLI11_PARSE(app, argc, argv);
  try {
    for (const CLI::App* verb : {check, renew, another, less, backup_verb, point_verb})
      if (*verb) Cluster::load(dir).require_one_machine(verb->get_name());
    if (*make && options.plan.empty() && how_many->empty())
      fail("--primaries is required, or --cluster with the file of several hosts");
    if (!options.plan.empty()) options.plan_text = Plan::text_of(options.plan);
    if (*make) return init(options);
    if (*check_all) return check_network(network);
    if (*empty) return make_pool(pool);
    if (*again) return restart_pool(theirs);
    if (*mark) return checkpoint_pool(theirs);
    if (*check) return checkpoint(dir);
    if (*run) return start(dir, node);
    if (*halt) return stop(dir, node, immediate);
    if (*renew) return upgrade(dir, node);
    if (*more) return add_memory(where, size, saved);
    if (*another) return add_primary(dir, node);
    if (*less) return remove_primary(dir, node, delete_data ? Data::kDelete : Data::kKeep);
    if (*show) return status(dir);
    if (*name) return dsn(dir, node);
    if (*shell) return psql(dir, node, shell->remaining());
    if (*verify_verb) return verify(where);
    if (*backup_verb) return backup(dir, backup_dir);
    if (*check_verb) return verify_backup(backup_dir);
    if (*point_verb) return restore_point(dir, archive);
    if (*restore_verb) return restore(back);
    if (*inspect_verb) return inspect(look);
    if (*trace_verb) return trace(told);
    if (*remove) return destroy(dir);
  } catch (const std::exception& e) {
    fflush(stdout);
    fmt::print(stderr, "gclctl: {}\n", text_of(e));
  }
  return 1;
}

// gclctl upgrade: other software for the primaries, one after the other, while the others serve
// (gclctl.upgrade-one-by-one).
#include <signal.h>

#include <cerrno>
#include <cstring>
#include <set>

#include "coherence/region/pool_lock.hpp"
#include "tools/gclctl/cluster.hpp"
#include "tools/gclctl/directory.hpp"
#include "tools/gclctl/failure.hpp"
#include "tools/gclctl/pool.hpp"
#include "tools/gclctl/prefix.hpp"
#include "tools/gclctl/primaries_lock.hpp"
#include "tools/gclctl/process.hpp"
#include "tools/gclctl/start.hpp"
#include "tools/gclctl/stop.hpp"
#include "tools/gclctl/upgrade_note.hpp"
#include "tools/gclctl/verbs.hpp"

namespace gclctl {
namespace {

std::set<fs::path> prefixes_of(const Cluster& c) {
  std::set<fs::path> all;
  for (const auto& entry : fs::directory_iterator(c.dir)) {
    const std::string name = entry.path().filename();
    if (name == "prefix" || name.starts_with("prefix.")) all.insert(entry.path());
  }
  return all;
}

// Of a process that died, and of before.
void remove_unused_prefixes(const Cluster& c) {
  std::set<fs::path> unused = prefixes_of(c);
  for (int k : c.numbers()) unused.erase(c.prefix(k));
  for (const fs::path& prefix : unused) fs::remove_all(prefix);
}

// The installed software as a prefix: one that is there already, or a new one.
fs::path take_software(const Cluster& c, const ExtensionFiles& extension) {
  const std::set<fs::path> there = prefixes_of(c);
  int number = 2;
  while (there.contains(c.dir / fmt::format("prefix.{}", number))) number++;
  const fs::path fresh = c.dir / fmt::format("prefix.{}", number);
  make_prefix(fresh, extension);
  for (const fs::path& one : there) {
    if (!same_software(one, fresh)) continue;
    fs::remove_all(fresh);
    return one;
  }
  sync_file_system(c.dir);
  return fresh;
}

// Before any primary is stopped.
void check_usable(const Cluster& c) {
  const int ours = server_version(installation().bindir) / 10000;
  const int theirs = server_version(c.bindir(c.chosen(0).front())) / 10000;
  if (ours != theirs)
    fail("the cluster has PostgreSQL {}, and {} has {}: another major version needs a new cluster, and a dump", theirs,
         installation().bindir.string(), ours);
  if (const PoolState state = inspect_pool(c); state.kind == PoolState::Kind::kForeign)
    fail(
        "this software cannot use the pool: {}. Nothing was changed. Where it is the protocol, stop all primaries in "
        "order, with the software that they have, then upgrade, then start; where it is the format, dump, make a new "
        "cluster, and restore",
        state.text);
}

bool starts_with(const Cluster& c, int k, const fs::path& prefix) {
  try {
    if (c.prefix(k) != prefix) c.use_prefix(k, prefix);
    return start_servers(c, k) == 0;
  } catch (const std::exception& e) {
    fmt::print(stderr, "gclctl: {}\n", text_of(e));
    return false;
  }
}

void exchange(const Cluster& c, int k, const fs::path& fresh) {
  const fs::path former = c.prefix(k);
  const std::string software = software_in(fresh);
  const bool runs = c.postmaster(k) != 0, stopped_for_it = !runs && has_upgrade_note(c, k);
  if (former == fresh) {
    fmt::print("primary {} has {} already\n", k, software);
    fflush(stdout);
    if (stopped_for_it && start_servers(c, k) != 0)
      fail("primary {} does not start with {}; see {}", k, software, c.log(k).string());
    drop_upgrade_note(c, k);
    return;
  }
  fmt::print("primary {}: {} in place of {}\n", k, software, software_in(former));
  fflush(stdout);
  if (!runs && !stopped_for_it) return c.use_prefix(k, fresh);
  note_upgrade(c, k, software);
  signal_and_wait(c, {k}, SIGINT);
  if (starts_with(c, k, fresh)) return;
  signal_and_wait(c, {k}, SIGINT);
  if (starts_with(c, k, former))
    fail("primary {} does not start with {}, and runs with what it had; see {}", k, software, c.log(k).string());
  fail("primary {} does not start with {}, nor with what it had; see {}", k, software, c.log(k).string());
}

int upgrade_servers(const fs::path& dir, int node, const ExtensionFiles& extension) {
  const coherence::PoolLock alone = lock_upgrade(dir, coherence::PoolLock::kWait);
  if (!alone.held()) fail("cannot lock {}: {}", (dir / "upgrade.lock").string(), strerror(errno));
  const PrimariesLock unchanged(dir);
  const Cluster c = Cluster::load(dir);
  const std::vector<int> chosen = c.chosen(node);
  check_usable(c);
  remove_unused_prefixes(c);
  fs::path fresh;
  try {
    fresh = take_software(c, extension);
    for (const int k : chosen) exchange(c, k, fresh);
  } catch (...) {
    remove_unused_prefixes(c);
    throw;
  }
  remove_unused_prefixes(c);
  std::set<fs::path> used;
  for (const int k : c.chosen(0)) used.insert(c.prefix(k));
  if (used.size() == 1)
    fmt::print("all primaries have {}; in each database with the extension: ALTER EXTENSION gcl UPDATE\n",
               software_in(fresh));
  return 0;
}

}  // namespace

int upgrade(const std::string& dir, int node) {
  const Cluster c = Cluster::load(dir);
  const ExtensionFiles extension = open_extension();
  return run_as(c.account, [&] { return upgrade_servers(c.dir, node, extension); });
}

}  // namespace gclctl

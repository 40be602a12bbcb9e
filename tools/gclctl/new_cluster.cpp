#include "tools/gclctl/new_cluster.hpp"

#include <fmt/format.h>

#include <random>

#include "tools/gclctl/checks.hpp"
#include "tools/gclctl/directory.hpp"
#include "tools/gclctl/failure.hpp"
#include "tools/gclctl/process.hpp"

namespace gclctl {
namespace {

constexpr size_t kSocketPathMax = 107;

std::string random_id() {
  std::random_device random;
  return fmt::format("{:08x}", random());
}

// A failed one leaves nothing behind.
int empty(const Cluster& c) {
  std::error_code ignored;
  fs::remove_all(c.pool_dir(), ignored);
  if (c.socket_dir.parent_path() != c.dir) fs::remove_all(c.socket_dir, ignored);
  for (const auto& entry : fs::directory_iterator(c.dir)) fs::remove_all(entry.path(), ignored);
  return 0;
}

}  // namespace

Cluster describe_new(const NewCluster& options) {
  Cluster c;
  c.dir = fs::weakly_canonical(fs::absolute(options.dir));
  c.id = random_id();
  c.account = account_for(c.dir);
  c.port = options.port;
  c.memory_dir = fs::absolute(options.memory_dir);
  c.socket_dir = c.dir / "run";
  if ((c.socket_dir / ".s.PGSQL.65535.lock").string().size() > kSocketPathMax) c.socket_dir = "/tmp/gcl-" + c.id;
  return c;
}

int make_cluster(const Cluster& c, const std::function<int(const ExtensionFiles&)>& fill) {
  if (fs::exists(c.dir) && (!fs::is_directory(c.dir) || !fs::is_empty(c.dir)))
    fail("{} is there and is not empty: give a new directory{}", c.dir.string(),
         fs::exists(c.dir / Cluster::kUnfinished) && !fs::exists(c.dir / Cluster::kFileName)
             ? "; what a command that was killed has left goes with: gclctl destroy " + c.dir.string()
             : "");
  for (const int k : c.chosen(0)) check_port_free(c, k);
  check_reachable(c.account, c.dir.parent_path());
  const ExtensionFiles extension = open_extension();
  const bool made = take_directory(c.dir, c.account);
  int code = 1;
  std::string problem;
  try {
    code = run_as(c.account, [&] {
      if (!c.on_hosts()) c.begin();  // a part's destroy removes the saved pool of all, which may be another cluster's
      return fill(extension);
    });
  } catch (const std::exception& e) {
    problem = text_of(e);
  }
  if (code != 0) {
    (void)run_as(c.account, [&] { return empty(c); });
    std::error_code ignored;
    if (made) fs::remove(c.dir, ignored);
    if (!problem.empty()) throw Failure(problem);
  }
  return code;
}

}  // namespace gclctl

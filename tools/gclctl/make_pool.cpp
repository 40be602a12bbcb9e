// gclctl make-pool: an empty pool for servers that gclctl does not run.
#include "tools/gclctl/failure.hpp"
#include "tools/gclctl/pool.hpp"
#include "tools/gclctl/process.hpp"
#include "tools/gclctl/verbs.hpp"

namespace gclctl {

int make_pool(const MakePoolOptions& options) {
  const fs::path file = fs::absolute(options.file), saved = fs::absolute(options.saved);
  return run_as(account_for_new_cluster(), [&] {
    for (const fs::path& path : {file, saved})
      if (fs::exists(path)) fail("{} is there already", path.string());
    create_pool(file, saved, parse_size(options.size), options.memory_nodes, options.primaries, options.locale,
                options.fence_on_death ? AfterDeath::kFence : AfterDeath::kRepair);
    fmt::print("An empty pool. In postgresql.conf of each server, K from 1 to {}:\n\n", options.primaries);
    fmt::print(
        "shared_preload_libraries = 'gcl'\ngcl.node_id = K\ngcl.primaries = {}\ngcl.pool = '{}'\ngcl.pool_file = "
        "'{}'\n",
        options.primaries, file.string(), saved.string());
    fmt::print("gcl.locale = '{}'\nmax_worker_processes = 48\n", options.locale);
    return 0;
  });
}

}  // namespace gclctl

// gclctl inspect: a pool, as it lies in memory, in words.
#include "tools/gclctl/inspect.hpp"

#include "tools/gclctl/failure.hpp"
#include "tools/gclctl/look.hpp"
#include "tools/gclctl/verbs.hpp"

namespace gclctl {

int inspect(const InspectOptions& options) {
  if (options.kind == "wal") return inspect_wal(options.where, options.node, options.page, options.last);
  return look_into(options.where, [&](coherence::PoolView& pool) {
    if (options.kind == "page") return inspect_page(pool, options.page, options.node);
    if (options.kind == "line") return inspect_line(pool, options.line, options.node);
    if (options.kind == "arena") return inspect_arena(pool, options.node);
    if (options.kind == "ring") return inspect_ring(pool, options.node, options.last);
    if (options.kind == "status") return inspect_status(pool, options.ids);
    return inspect_pool_header(pool);
  });
}

}  // namespace gclctl

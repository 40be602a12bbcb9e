// gclctl restart-pool: a pool that memory has lost is made again, for servers that gclctl does not run.
#include "tools/gclctl/cluster.hpp"
#include "tools/gclctl/failure.hpp"
#include "tools/gclctl/process.hpp"
#include "tools/gclctl/restart.hpp"
#include "tools/gclctl/verbs.hpp"

namespace gclctl {
namespace {

constexpr uint64_t kAll = ~uint64_t{0};

// K=DIRECTORY.  A primary that has had several data directories has their logs in one.
void add_data(const std::string& text, LostPool* lost) {
  const size_t equals = text.find('=');
  int k = 0;
  for (size_t i = 0; i < equals && equals != std::string::npos; ++i) {
    if (text[i] < '0' || text[i] > '9' || k > kPrimariesMax) fail("--data is K=DIRECTORY, not {}", text);
    k = k * 10 + (text[i] - '0');
  }
  if (k < 1 || k > kPrimariesMax) fail("--data is K=DIRECTORY with a primary's number, not {}", text);
  const fs::path data = fs::absolute(text.substr(equals + 1));
  if (postmaster_of(data) != 0) fail("primary {} runs on {}: stop all first", k, data.string());
  lost->logs[k] = {{data, 0, kAll}};
}

}  // namespace

int restart_pool(const RestartPoolOptions& options) {
  LostPool lost{fs::absolute(options.file), fs::absolute(options.saved), "", {}};
  return run_as(account_of(lost.saved), [&] {
    for (const std::string& text : options.data) add_data(text, &lost);
    if (!restart_pool(lost)) fmt::print("nothing is lost: the pool is in memory, or its copy is of a clean stop\n");
    return 0;
  });
}

}  // namespace gclctl

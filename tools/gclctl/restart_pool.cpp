// gclctl restart-pool, checkpoint-pool: for servers that gclctl does not run.
#include "tools/gclctl/checkpoint.hpp"
#include "tools/gclctl/cluster.hpp"
#include "tools/gclctl/failure.hpp"
#include "tools/gclctl/process.hpp"
#include "tools/gclctl/restart.hpp"
#include "tools/gclctl/verbs.hpp"

namespace gclctl {
namespace {

// K=DIRECTORY.  A primary that has had several data directories has their logs in one.
void add_data(const std::string& text, std::map<int, std::vector<LogPlace>>* logs) {
  const size_t equals = text.find('=');
  int k = 0;
  for (size_t i = 0; i < equals && equals != std::string::npos; ++i) {
    if (text[i] < '0' || text[i] > '9' || k > kPrimariesMax) fail("--data is K=DIRECTORY, not {}", text);
    k = k * 10 + (text[i] - '0');
  }
  if (k < 1 || k > kPrimariesMax) fail("--data is K=DIRECTORY with a primary's number, not {}", text);
  (*logs)[k] = {{fs::absolute(text.substr(equals + 1)), 0, LogPlace::kNewest}};
}

}  // namespace

int restart_pool(const RestartPoolOptions& options) {
  LostPool lost{fs::absolute(options.file), fs::absolute(options.saved), "", {}};
  return run_as(account_of(lost.saved), [&] {
    for (const std::string& text : options.data) add_data(text, &lost.logs);
    for (const auto& [k, places] : lost.logs)
      if (const fs::path& data = places.front().data; postmaster_of(data) != 0)
        fail("primary {} runs on {}: stop all first", k, data.string());
    if (!restart_pool(lost))
      fmt::print("nothing was done: the pool is in memory and not fenced, or its copy is of a clean stop\n");
    return 0;
  });
}

int checkpoint_pool(const RestartPoolOptions& options) {
  const fs::path saved = fs::absolute(options.saved);
  return run_as(account_of(saved), [&] {
    std::map<int, std::vector<LogPlace>> logs;
    for (const std::string& text : options.data) add_data(text, &logs);
    return make_checkpoint_now(fs::absolute(options.file), saved, logs);
  });
}

}  // namespace gclctl

// gclctl verify: the checksums of a saved pool, without loading it.
#include <fmt/format.h>

#include <memory>

#include "coherence/pool/pool.hpp"
#include "coherence/region/damage.hpp"
#include "coherence/region/saved_file.hpp"
#include "tools/gclctl/cluster.hpp"
#include "tools/gclctl/failure.hpp"
#include "tools/gclctl/process.hpp"
#include "tools/gclctl/verbs.hpp"

namespace gclctl {
namespace {

int verify_file(const fs::path& saved) {
  const auto damage = std::make_unique<coherence::Damage>();
  coherence::Problem problem;
  const coherence::Status ok = coherence::verify_saved(saved.c_str(), damage.get(), &problem);
  for (uint64_t i = 0; i < damage->bad && i < coherence::Damage::kNamedMax; i++) {
    const auto& block = damage->first[i];
    coherence::Text where;
    block.add_to(where);
    fmt::print("bad block {} of memory node {} ({}): calculated checksum {} but expected {}\n", block.number,
               block.memory_node, where.c_str(), block.calculated, block.expected);
  }
  fmt::print("{} blocks checked, {} bad", damage->checked, damage->bad);
  if (damage->unchecked > 0) fmt::print(", {} could not be checked", damage->unchecked);
  fmt::print("\n");
  if (!ok) fail("{}", problem.text);
  return 0;
}

}  // namespace

int verify(const std::string& where) {
  std::error_code error;
  if (fs::is_regular_file(where, error)) {
    const fs::path file = fs::absolute(where);
    return run_as(account_of(file), [&] { return verify_file(file); });
  }
  const Cluster c = Cluster::load(where);
  return run_as(c.account, [&] {
    if (c.any_runs()) fail("stop the primaries first: the saved pool is written when the last one stops");
    return verify_file(c.saved_pool());
  });
}

}  // namespace gclctl

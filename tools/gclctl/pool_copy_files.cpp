#include "tools/gclctl/pool_copy_files.hpp"

#include "coherence/pool/pool.hpp"
#include "coherence/region/memory_file.hpp"
#include "coherence/region/pool_outline.hpp"
#include "coherence/region/since_save.hpp"
#include "tools/gclctl/failure.hpp"

namespace gclctl {

std::vector<fs::path> files_of_copy(const fs::path& saved) {
  coherence::Problem problem;
  const auto copy = coherence::outline_pool(saved.c_str(), &problem);
  if (!copy) fail("{}", problem.text);
  std::vector<fs::path> files;
  for (uint32_t n = 0; n < copy->memory_nodes; ++n) files.emplace_back(coherence::MemoryPath(saved.c_str(), n).text);
  for (const auto kind : {coherence::BesideCopy::kCheckpoint, coherence::BesideCopy::kDelta})
    if (const fs::path file = coherence::BesideCopy(saved.c_str(), kind).text; fs::exists(file)) files.push_back(file);
  return files;
}

}  // namespace gclctl

#include "tools/gclctl/pool.hpp"

#include <algorithm>

#include "bufmgr/buffer_pool.hpp"
#include "bufmgr/pool_layout.hpp"
#include "coherence/pool/pool.hpp"
#include "coherence/region/memory_file.hpp"
#include "coherence/region/pool_outline.hpp"
#include "coherence/transport/shm/local_pool.hpp"
#include "extension/compatibility.hpp"
#include "tools/gclctl/directory.hpp"
#include "tools/gclctl/failure.hpp"
#include "tools/gclctl/memory_node.hpp"
#include "tools/gclctl/prefix.hpp"
#include "tools/gclctl/served_pool.hpp"

namespace gclctl {
namespace {

constexpr int kServerBlockSize = 8192;

void create(const std::string& path, const std::string& saved, uint64_t bytes, int memory_nodes, int primaries,
            const std::string& compatibility, AfterDeath after_death) {
  bufmgr::PoolSizes sizes;
  sizes.repairs_deaths = sizes.records_deaths = after_death == AfterDeath::kRepair;
  sizes.pool_bytes = bytes;
  sizes.memory_nodes = uint32_t(memory_nodes);
  sizes.nodes_max = std::max(bufmgr::kNodesDefault, uint32_t(primaries) + 1);  // primary K is node K
  coherence::Problem problem;
  auto made = bufmgr::BufferPool::create_pool(
      {.path = path.c_str(), .durable_path = saved.c_str(), .compatibility = compatibility.c_str()}, sizes, &problem);
  if (!made) fail("the pool cannot be made: {} ({})", problem.text, coherence::errc_name(made.error()));
}

std::string add(const std::string& path, const std::string& saved, const std::string& compatibility, uint64_t bytes) {
  coherence::Problem problem;
  auto added = bufmgr::BufferPool::add_memory_node(
      {.path = path.c_str(), .durable_path = saved.c_str(), .compatibility = compatibility.c_str()}, bytes, &problem);
  if (!added) fail("no memory node can be added: {} ({})", problem.text, coherence::errc_name(added.error()));
  return added->saved ? "" : problem.text;
}

}  // namespace

std::string compatibility_of(const Cluster& cluster) {
  // Minor versions do not count.
  return gcl::server_compatibility(server_version(cluster.any_bindir()), kServerBlockSize, cluster.locale);
}

void make_pool_dir(const Cluster& cluster) { make_private_directory(cluster.pool_dir()); }

void create_pool(const Cluster& cluster, uint64_t bytes, int memory_nodes, AfterDeath after_death) {
  create(cluster.pool(), cluster.saved_pool(), bytes, memory_nodes, cluster.primaries, compatibility_of(cluster),
         after_death);
}

void create_pool(const fs::path& file, const fs::path& saved, uint64_t bytes, int memory_nodes, int primaries,
                 const std::string& locale, AfterDeath after_death) {
  create(file, saved, bytes, memory_nodes, primaries,
         gcl::server_compatibility(server_version(installation().bindir), kServerBlockSize, locale), after_death);
}

std::string add_memory_node(const Cluster& cluster, uint64_t bytes) {
  if (memory_node_process(cluster) != 0) {  // it has the pool; the copy gets the new one when it is saved
    const auto pages = bufmgr::further_pages_bytes(bytes);
    if (!pages) fail("no memory node can be added: it would have no pages");
    start_new_memory_node(cluster, *pages);
    return "";
  }
  return add(cluster.pool(), cluster.saved_pool(), compatibility_of(cluster), bytes);
}

std::string add_memory_node(const fs::path& file, const fs::path& saved, uint64_t bytes) {
  coherence::Problem problem;
  auto copy = coherence::outline_pool(saved.c_str(), &problem);
  if (!copy) fail("{}", problem.text);
  auto pool = coherence::outline_pool(file.c_str(), &problem);
  if (pool && pool->pool_id != copy->pool_id)
    fail("{} is not the pool that {} is the copy of", file.string(), saved.string());
  return add(file, saved, "", bytes);
}

PoolState inspect_pool(const Cluster& cluster) {
  if (!cluster.has_first_memory_node() || memory_node_process(cluster) != 0) return ask_memory_node(cluster);
  using Condition = coherence::LocalPool::Condition;
  std::string path = cluster.pool(), saved = cluster.saved_pool(), compatibility = compatibility_of(cluster);
  coherence::Problem problem;
  switch (coherence::LocalPool::inspect(
      {.path = path.c_str(), .durable_path = saved.c_str(), .compatibility = compatibility.c_str()}, &problem)) {
    case Condition::kClean:
      return {PoolState::Kind::kClean, problem.text};
    case Condition::kInUse:
      return {PoolState::Kind::kInUse, problem.text};
    case Condition::kOrphaned:
      return {PoolState::Kind::kOrphaned, problem.text};
    case Condition::kUnclean:
      return {fs::exists(cluster.pool()) ? PoolState::Kind::kUnclean : PoolState::Kind::kLost, problem.text};
    case Condition::kDamaged:
      return {PoolState::Kind::kDamaged, problem.text};
    case Condition::kForeign:
      return {PoolState::Kind::kForeign, problem.text};
    case Condition::kUnsaved:
      return {PoolState::Kind::kUnsaved, problem.text};
    case Condition::kAbsent:
      break;
  }
  return {PoolState::Kind::kAbsent, problem.text};
}

void save_pool(const Cluster& cluster) {
  std::string path = cluster.pool(), saved = cluster.saved_pool(), compatibility = compatibility_of(cluster);
  coherence::Problem problem;
  if (!coherence::LocalPool::save_again(
          {.path = path.c_str(), .durable_path = saved.c_str(), .compatibility = compatibility.c_str()}, &problem))
    fail(
        "the pool could not be saved: {}. It is whole in memory as long as this machine is up; make room, then run "
        "gclctl stop again",
        problem.text);
}

PoolExtent extent_of_pool(const fs::path& file, const fs::path& saved) {
  std::error_code error;
  const fs::path& where = fs::exists(file, error) ? file : saved;
  PoolExtent extent;
  coherence::Problem problem;
  auto said = coherence::outline_pool(where.c_str(), &problem);
  if (!said) return extent;
  for (uint32_t k = 0; k < said->memory_nodes; k++) {
    extent.files.emplace_back(coherence::MemoryPath(where.c_str(), k).text);
    extent.bytes += said->bytes[k];
  }
  return extent;
}

uint64_t bytes_to_load(const fs::path& file, const fs::path& saved) {
  std::error_code error;
  return fs::exists(file, error) ? 0 : extent_of_pool(file, saved).bytes;
}

}  // namespace gclctl

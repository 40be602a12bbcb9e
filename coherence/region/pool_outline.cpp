#include "coherence/region/pool_outline.hpp"

#include <fcntl.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "coherence/region/memory_file.hpp"
#include "coherence/region/pool_header.hpp"

namespace coherence {

Result<PoolOutline> outline_pool(const char* path, Problem* problem) {
  File file(::open(path, O_RDONLY | O_CLOEXEC));
  if (!file.open())
    return problem->set(errno == ENOENT ? Errc::kNotFound : Errc::kSystem, "cannot open %s: %s", path, strerror(errno));
  auto header = std::make_unique<PoolHeader>();
  GCL_TRY(read_header(file.fd(), path, header.get(), problem));
  GCL_TRY(check_header(*header, nullptr, path, problem));
  PoolOutline outline{header->pool_id, header->saves, header->memory_nodes.load(), {}};
  for (uint32_t k = 0; k < outline.memory_nodes; k++) outline.bytes[k] = header->memory_bytes[k];
  return outline;
}

}  // namespace coherence

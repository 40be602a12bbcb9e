#include "coherence/open_transport.hpp"

#include <cstring>

#include "coherence/transport/shm/shm_transport.hpp"

namespace coherence {

Result<std::unique_ptr<Transport>> open_transport(const char* description, Problem* problem) {
  if (strcmp(description, "shm") == 0) return std::unique_ptr<Transport>(std::make_unique<ShmTransport>());
  return problem->set(Errc::kNotFound, "there is no transport \"%s\": there is shm", description);
}

}  // namespace coherence

// open_transport() of programs in which nothing has a socket.
#include <cstring>

#include "coherence/open_transport.hpp"
#include "coherence/transport/shm/shm_transport.hpp"

namespace coherence {

Result<std::unique_ptr<Transport>> open_transport(const TransportSettings& settings, Problem* problem) {
  if (strcmp(settings.kind, "shm") == 0) return std::unique_ptr<Transport>(std::make_unique<ShmTransport>());
  return problem->set(Errc::kNotFound, "there is no transport \"%s\" here: there is shm", settings.kind);
}

}  // namespace coherence

#include "coherence/open_transport.hpp"

#include <cstring>

#include "coherence/transport/shm/shm_transport.hpp"
#include "coherence/transport/tcp/tcp_transport.hpp"
#include "coherence/transport/verbs/verbs_transport.hpp"

namespace coherence {

Result<std::unique_ptr<Transport>> open_transport(const TransportSettings& settings, Problem* problem) {
  if (strcmp(settings.kind, "shm") == 0) return std::unique_ptr<Transport>(std::make_unique<ShmTransport>());
  if (strcmp(settings.kind, "tcp") == 0) return tcp::TcpTransport::make(settings, problem);
  if (strcmp(settings.kind, "verbs") == 0) return verbs::make_transport(settings, problem);
  return problem->set(Errc::kNotFound, "there is no transport \"%s\": there are shm, tcp and verbs", settings.kind);
}

}  // namespace coherence

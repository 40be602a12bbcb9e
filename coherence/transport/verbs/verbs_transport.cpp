#include "coherence/transport/verbs/verbs_transport.hpp"

#include <span>

#include "coherence/transport/tcp/tcp_transport.hpp"
#include "coherence/transport/verbs/verbs_path.hpp"

namespace coherence::verbs {

Result<std::unique_ptr<Transport>> make_transport(const TransportSettings& settings, Problem* problem) {
  const DeviceSettings wanted{.device = settings.device, .port = settings.device_port, .gid_index = settings.gid_index};
  return tcp::TcpTransport::make(settings, problem,
                                 [wanted](std::span<std::byte> frames, const net::Endpoint& listens_at, tcp::Log& log,
                                          Problem* why) -> Result<std::unique_ptr<tcp::DirectPath>> {
                                   auto device = Device::open(wanted, listens_at, log, why);
                                   if (!device) return device.error();
                                   log.line((*device)->name());
                                   auto path = VerbsPath::make(device.take(), frames, why);
                                   if (!path) return path.error();
                                   return std::unique_ptr<tcp::DirectPath>(path.take());
                                 });
}

}  // namespace coherence::verbs

// What a path to another part of the cluster does: reached or not, how fast, and whether what is long passes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "coherence/transport/net/address.hpp"
#include "coherence/transport/net/credentials.hpp"
#include "coherence/transport/tcp/base/log.hpp"
#include "coherence/transport/tcp/member/tool_link.hpp"

namespace gclctl {

// A connection that is made and closed again, within three seconds.
struct Reach {
  bool reached = false;
  bool refused = false;  // the machine is there, and nobody listens
  std::string why;       // not reached: what the system says, and what helps
  std::string name;      // of the address that was tried last
  int mtu = 0;           // bytes, as this machine knows the path; 0: it does not say
  double connect_ms = 0;
};
Reach reach(const coherence::net::Endpoints& at);

// What a name stands for; empty: `why`.
std::optional<coherence::net::Endpoints> resolve(const std::string& address, std::string* why);
// Whether an address belongs to this machine, as the system sees it.
bool is_of_this_machine(const coherence::net::Endpoint& at);

// A link to a memory node, as a tool.
class MemoryNodeProbe {
 public:
  MemoryNodeProbe(const std::string& address, const coherence::net::Endpoints& at, uint32_t number, uint64_t cluster,
                  coherence::net::Credentials credentials);
  ~MemoryNodeProbe();

  // Memory node 0: what it says of the pool and its members; false: `why`.
  bool ask(std::string* why);
  // Of any: a word that every memory node has.
  bool answers_what_is_short(std::string* why);
  const coherence::tcp::Table& table() const { return *link_->table(); }
  const coherence::tcp::HeaderRecord& header() const { return link_->header(); }

  // Words begin there, and pages.  Batches until the median is known; each false: `why`.
  struct Places {
    uint64_t words_at = 0, pages_at = 0, pages = 0;
  };
  bool measure_loads(const Places&, double* median_us, std::string* why);
  bool try_atomic(const Places&, double* us, std::string* why);
  // Bytes of several pages in one answer, and a request that is longer than a packet.
  bool try_long(const Places&, std::string* why);

 private:
  class Silent final : public coherence::tcp::Log {
    void line(const char*) noexcept override {}
  };
  template <class Fill>
  bool run(const Fill& fill, double* us, std::string* why);
  Silent log_;
  const coherence::MemoryNodeId number_;
  std::unique_ptr<coherence::tcp::ToolLink> link_;
  std::string no_link_;
};

// Greets a primary, which wants nothing of tools: what it answers shows the key and the version.  Empty: it was there;
// else why not.
std::string greet_primary(const coherence::net::Endpoints& at, uint8_t number, uint64_t cluster,
                          coherence::net::Credentials credentials);

}  // namespace gclctl

// Admission: which link a greeting is about, and whether there may be one (net.one-link-per-start).  No sockets.
#pragma once

#include <cstdint>
#include <vector>

#include "coherence/transport/net/hello.hpp"
#include "coherence/transport/net/link.hpp"

namespace coherence::net {

class Admission {
 public:
  // `again`: as Links::Spec::again.
  Admission(const Who& self, uint64_t cluster, int links_max, bool again = false) noexcept
      : self_(self), cluster_(cluster), links_max_(size_t(links_max)), again_(again) {}

  struct Decision {
    Refusal refusal = Refusal::kNone;
    char reason[sizeof Welcome::reason] = "";
    Link* link = nullptr;      // which it is about; null: a new one
    Link* replaced = nullptr;  // an older start's, which is over now
  };
  Decision judge(const Hello&) const noexcept;
  // A new link, for a greeting that judge() let in.
  void begun(Link&);
  void over(const Link&) noexcept;

 private:
  [[gnu::format(printf, 2, 3)]] static Decision refuse(Refusal, const char* format, ...) noexcept;
  uint64_t& newest(const Who& who) noexcept { return newest_[who.role == Role::kNode][who.id]; }

  const Who self_;
  const uint64_t cluster_;
  const size_t links_max_;
  const bool again_;
  std::vector<Link*> links_;                  // that were begun and are not over
  uint64_t newest_[2][kMemoryNodesMax] = {};  // start of each peer that had a link; but of tools
};

}  // namespace coherence::net

#include "coherence/transport/net/who.hpp"

#include <cstdio>

namespace coherence::net {
namespace {

const char* role_name(Role role) noexcept {
  switch (role) {
    case Role::kNode:
      return "node";
    case Role::kMemoryNode:
      return "memory node";
    case Role::kTool:
      return "tool";
  }
  return "nobody";
}

}  // namespace

Who::Name Who::name() const noexcept {
  Name name;
  if (start == 0)
    snprintf(name.text, sizeof name.text, "%s %u", role_name(role), unsigned(id));
  else
    snprintf(name.text, sizeof name.text, "%s %u (start %llu)", role_name(role), unsigned(id),
             static_cast<unsigned long long>(start));
  return name;
}

}  // namespace coherence::net

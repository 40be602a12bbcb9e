// What a transport brings to the conformance tests: a pool of two memory nodes, and users of it.
#pragma once

#include <cstdint>
#include <memory>
#include <ostream>
#include <vector>

#include "coherence/transport/memory.hpp"

namespace conformance {

using namespace coherence;  // NOLINT: the tests speak of nothing else

inline constexpr int kMemoryNodes = 2;
inline constexpr uint64_t kMemoryBytes = 1 << 20;  // of each, zero at first
inline constexpr uint32_t kLocalBytes = 1 << 16;

// One user: of one thread in one process, made there (transport.one-thread).
class User {
 public:
  virtual ~User() = default;
  virtual Memory& memory() = 0;
  // kLocalBytes that READ and WRITE may name; private to this user, 64-byte aligned, zero at first.
  virtual std::byte* local() = 0;
  // The connection breaks at the batch that is posted next, when so many of its operations have taken place; the one
  // behind it has a new connection.  REQUIRES: TransportKind::breaks.
  virtual void break_after(int) { VERIFY(false); }
};

// A pool; ends after its users.  Made before any fork, its users after it: children of the process may make users, too.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual std::unique_ptr<User> user() = 0;
};

struct TransportKind {
  const char* name;
  std::unique_ptr<Transport> (*make)();
  bool done_in_post;    // post() returns with its batches done (transport.poll-until-done)
  bool keeps_unwanted;  // a READ whose OnlyIf does not hold leaves its destination alone (a transport may ignore it)
  bool breaks;          // it has connections, and a test may break them
};
inline std::ostream& operator<<(std::ostream& o, const TransportKind& kind) { return o << kind.name; }

// All of them; those that can break.
const std::vector<TransportKind>& transports();
std::vector<TransportKind> breaking_transports();

}  // namespace conformance

// ClusterKey: the secret that all processes of a cluster have, and how TLS proves it: as a pre-shared key of TLS 1.3,
// with a fresh Diffie-Hellman exchange for each connection.
#pragma once

#include <cstddef>

struct ssl_ctx_st;

namespace coherence::net {

class ClusterKey {
 public:
  ClusterKey() = default;
  ClusterKey(const ClusterKey&) = delete;
  ~ClusterKey();
  // 64 hexadecimal digits, and white space around them.
  bool read(const char* text, size_t bytes) noexcept;
  // Connections of this context prove the key, and accept no other proof.  False: no memory.
  bool give_to(ssl_ctx_st*) const noexcept;

 private:
  static constexpr size_t kBytes = 32;
  unsigned char secret_[kBytes] = {};
};

}  // namespace coherence::net

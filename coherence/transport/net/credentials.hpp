// What shows peers that this process belongs to the cluster: the cluster's key, or a certificate.
//
// net.tls13-only: Protected connections are TLS 1.3; nothing older is spoken, and nothing is resumed, sent early or
// sent without the proof of both sides.
// net.plain-is-local: Credentials::plain() serves local addresses only; a process that dials or listens elsewhere
// with it is refused before a byte is sent.  Credentials that are not plain never give way to plain.
// net.key-file-private: A file with a secret that anybody but its owner can read is refused (one of root's may be
// readable for its group).  Secrets are never logged.
// net.cluster-has-its-ca: A process with a certificate that the CA signed is in the cluster: the CA signs for nobody
// else.
//
//   Result<Credentials> credentials = Credentials::of_key_file("/etc/gcl/cluster.key", problem);
#pragma once

#include <memory>
#include <utility>

#include "coherence/base/problem.hpp"
#include "coherence/base/result.hpp"

struct ssl_ctx_st;

namespace coherence::net {

class Credentials {
 public:
  static Credentials plain() noexcept { return Credentials(nullptr); }
  // 64 hex digits (32 random bytes), and nothing else but white space.  kNotFound: no such file; kIncompatible: it is
  // no key, or others can read it.
  static Result<Credentials> of_key_file(const char* path, Problem*);
  // PEM files.  Also kIncompatible: the certificate has expired, or is not the key's.
  static Result<Credentials> of_certificates(const char* certificate, const char* key, const char* ca, Problem*);
  // kIncompatible: bytes of connections would leave this machine unprotected.
  Status fit(bool local, const char* address, Problem*) const;

  bool is_plain() const noexcept { return context_ == nullptr; }
  bool has_key() const noexcept { return has_key_; }  // of_key_file()
  ssl_ctx_st* context() const noexcept { return context_.get(); }

 private:
  explicit Credentials(std::shared_ptr<ssl_ctx_st> context, bool has_key = false) noexcept
      : context_(std::move(context)), has_key_(has_key) {}
  std::shared_ptr<ssl_ctx_st> context_;
  bool has_key_ = false;
};

}  // namespace coherence::net

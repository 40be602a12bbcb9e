#include "coherence/transport/net/credentials.hpp"

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <cstring>

#include "coherence/transport/net/cluster_key.hpp"
#include "coherence/transport/net/secret_file.hpp"
#include "coherence/transport/net/tls_reason.hpp"

namespace coherence::net {
namespace {

using Context = std::shared_ptr<SSL_CTX>;

// Both hash with SHA-256, as the key's proof does.
constexpr char kCiphers[] = "TLS_AES_128_GCM_SHA256:TLS_CHACHA20_POLY1305_SHA256";

// net.tls13-only
Context make_context(Problem* problem) {
  Context context(SSL_CTX_new(TLS_method()), SSL_CTX_free);
  SSL_CTX* const c = context.get();
  if (!c || SSL_CTX_set_min_proto_version(c, TLS1_3_VERSION) != 1 ||
      SSL_CTX_set_max_proto_version(c, TLS1_3_VERSION) != 1 || SSL_CTX_set_ciphersuites(c, kCiphers) != 1 ||
      SSL_CTX_set_num_tickets(c, 0) != 1) {
    (void)tls_failed("TLS cannot be set up", problem);
    return nullptr;
  }
  SSL_CTX_set_options(c, SSL_OP_NO_TICKET | SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_max_early_data(c, 0);
  SSL_CTX_set_recv_max_early_data(c, 0);
  SSL_CTX_set_mode(c, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_max_cert_list(c, 32 * 1024);
  SSL_CTX_set_verify(c, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  return context;
}

// No key asks at the terminal for its pass phrase.
int no_phrase(char*, int, int, void*) { return 0; }

Errc refuse(const char* what, const char* path, Problem* problem) {
  Problem reason;
  (void)tls_failed(what, &reason);
  return problem->set(Errc::kIncompatible, "%.200s: %.250s", path, reason.text);
}

Status use_key(SSL_CTX* context, const char* path, Problem* problem) {
  SecretFile file;
  GCL_TRY(file.read(path, problem));
  BIO* const bytes = BIO_new_mem_buf(file.text(), int(file.size()));
  EVP_PKEY* const key = bytes ? PEM_read_bio_PrivateKey(bytes, nullptr, no_phrase, nullptr) : nullptr;
  BIO_free(bytes);
  if (!key) return refuse("there is no private key without a pass phrase in it", path, problem);
  const bool fits = SSL_CTX_use_PrivateKey(context, key) == 1 && SSL_CTX_check_private_key(context) == 1;
  EVP_PKEY_free(key);
  return fits ? Status() : refuse("the key is not the certificate's", path, problem);
}

}  // namespace

Result<Credentials> Credentials::of_key_file(const char* path, Problem* problem) {
  ERR_clear_error();
  SecretFile file;
  GCL_TRY(file.read(path, problem));
  ClusterKey key;
  if (!key.read(file.text(), file.size()))
    return problem->set(Errc::kIncompatible, "%.300s holds no key: it must have 64 hexadecimal digits, and no more",
                        path);
  Context context = make_context(problem);
  if (!context) return Errc::kSystem;
  if (!key.give_to(context.get())) return tls_failed("TLS cannot be set up", problem);
  return Credentials(std::move(context), true);
}

Result<Credentials> Credentials::of_certificates(const char* certificate, const char* key, const char* ca,
                                                 Problem* problem) {
  ERR_clear_error();
  Context context = make_context(problem);
  if (!context) return Errc::kSystem;
  SSL_CTX* const c = context.get();
  if (SSL_CTX_use_certificate_chain_file(c, certificate) != 1)
    return refuse("it has no certificate", certificate, problem);
  const X509* const ours = SSL_CTX_get0_certificate(c);
  if (X509_cmp_current_time(X509_get0_notAfter(ours)) < 0)
    return problem->set(Errc::kIncompatible, "%.300s: the certificate has expired", certificate);
  GCL_TRY(use_key(c, key, problem));
  if (SSL_CTX_load_verify_file(c, ca) != 1) return refuse("it has no certificate of a CA", ca, problem);
  return Credentials(std::move(context));
}

Status Credentials::fit(bool local, const char* address, Problem* problem) const {
  if (!is_plain() || local) return {};
  return problem->set(Errc::kIncompatible,
                      "%.300s is not on this machine: without a key or a certificate, links are for loopback and unix "
                      "sockets only",
                      address);
}

}  // namespace coherence::net

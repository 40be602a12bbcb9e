#include "coherence/transport/net/tls_reason.hpp"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <cstdio>

namespace coherence::net {
namespace {

// The first one: what comes behind it follows from it.
unsigned long take_error() noexcept {
  const unsigned long error = ERR_get_error();
  ERR_clear_error();
  return error;
}

const char* text_of(unsigned long error) noexcept {
  const char* const text = error ? ERR_reason_error_string(error) : nullptr;
  return text ? text : "no reason is known";
}

// OpenSSL's number for an alert that the other side sent is this and the alert's own.
constexpr int kAlert = SSL_AD_REASON_OFFSET;

}  // namespace

Errc tls_failed(const char* what, Problem* problem) noexcept {
  return problem->set(Errc::kSystem, "%s: %s", what, text_of(take_error()));
}

Errc handshake_failed(const SSL* ssl, bool has_key, Problem* problem) noexcept {
  const unsigned long error = take_error();
  const int reason = ERR_GET_LIB(error) == ERR_LIB_SSL ? ERR_GET_REASON(error) : 0;
  switch (reason) {
    case SSL_R_BINDER_DOES_NOT_VERIFY:
      return problem->set(Errc::kIncompatible, "its key is another than the cluster's");
    case SSL_R_CERTIFICATE_VERIFY_FAILED:
      if (has_key) break;
      return problem->set(Errc::kIncompatible, "its certificate is refused: %s",
                          X509_verify_cert_error_string(SSL_get_verify_result(ssl)));
    case SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE:
      return problem->set(Errc::kIncompatible, "it shows no certificate");
    case SSL_R_NO_SHARED_CIPHER:
    case SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM:
      if (!has_key) break;
      return problem->set(Errc::kIncompatible, "it does not show that it has a key");
    case SSL_R_UNSUPPORTED_PROTOCOL:
    case SSL_R_VERSION_TOO_LOW:
    case SSL_R_WRONG_SSL_VERSION:
      return problem->set(Errc::kIncompatible, "it does not speak TLS 1.3");
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_HTTP_REQUEST:
    case SSL_R_HTTPS_PROXY_REQUEST:
    case SSL_R_PACKET_LENGTH_TOO_LONG:
    case SSL_R_BAD_PACKET:
      return problem->set(Errc::kIncompatible, "it does not speak TLS");
    case kAlert + SSL_AD_ILLEGAL_PARAMETER:
    case kAlert + SSL_AD_DECRYPT_ERROR:
    case kAlert + SSL_AD_HANDSHAKE_FAILURE:
    case kAlert + SSL_AD_UNKNOWN_PSK_IDENTITY:
      if (!has_key) break;
      return problem->set(Errc::kIncompatible, "it refuses this side's key (alert: %s)", text_of(error));
  }
  if (reason >= kAlert && reason < kAlert + 256)
    return problem->set(Errc::kIncompatible, "it refuses this side (alert: %s)", text_of(error));
  return problem->set(Errc::kIncompatible, "the TLS handshake failed: %s", text_of(error));
}

}  // namespace coherence::net

#include "coherence/transport/net/cluster_key.hpp"

#include <openssl/crypto.h>
#include <openssl/ssl.h>

#include <cstring>

namespace coherence::net {
namespace {

constexpr unsigned char kName[] = {'g', 'c', 'l'};  // the key's, as one side tells it to the other
constexpr unsigned char kCipher[] = {0x13, 0x01};   // TLS_AES_128_GCM_SHA256: the key goes with its hash

int digit(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

bool blank(char c) noexcept { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

struct Secret {
  unsigned char bytes[32];
};

// A context's secret ends with the context.
int secret_index() noexcept {
  static const int index = SSL_CTX_get_ex_new_index(
      0, nullptr, nullptr, nullptr,
      [](void*, void* secret, CRYPTO_EX_DATA*, int, long, void*) { OPENSSL_clear_free(secret, sizeof(Secret)); });
  return index;
}

// What the key is for TLS, which looks for the name of a context even in such a session.  Null: no memory.
SSL_SESSION* session_of(SSL* ssl) noexcept {
  const auto* const secret = static_cast<Secret*>(SSL_CTX_get_ex_data(SSL_get_SSL_CTX(ssl), secret_index()));
  const SSL_CIPHER* const cipher = SSL_CIPHER_find(ssl, kCipher);
  SSL_SESSION* const session = secret && cipher ? SSL_SESSION_new() : nullptr;
  if (session && SSL_SESSION_set1_master_key(session, secret->bytes, sizeof secret->bytes) == 1 &&
      SSL_SESSION_set_cipher(session, cipher) == 1 && SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1 &&
      SSL_SESSION_set1_id_context(session, kName, sizeof kName) == 1)
    return session;
  SSL_SESSION_free(session);
  return nullptr;
}

// The side that dials.
int offer(SSL* ssl, const EVP_MD* hash, const unsigned char** name, size_t* bytes, SSL_SESSION** session) noexcept {
  *session = nullptr;
  SSL_SESSION* const ours = session_of(ssl);
  if (!ours) return 0;
  if (hash && SSL_CIPHER_get_handshake_digest(SSL_SESSION_get0_cipher(ours)) != hash) {
    SSL_SESSION_free(ours);
    return 1;  // without the key; the other side refuses that
  }
  *name = kName;
  *bytes = sizeof kName;
  *session = ours;
  return 1;
}

// The side that was dialed.
int look_up(SSL* ssl, const unsigned char* name, size_t bytes, SSL_SESSION** session) noexcept {
  *session = nullptr;
  if (bytes != sizeof kName || memcmp(name, kName, bytes) != 0) return 1;
  *session = session_of(ssl);
  return *session != nullptr;
}

}  // namespace

ClusterKey::~ClusterKey() { OPENSSL_cleanse(secret_, sizeof secret_); }

bool ClusterKey::read(const char* text, size_t bytes) noexcept {
  while (bytes > 0 && blank(text[bytes - 1])) bytes--;
  while (bytes > 0 && blank(*text)) text++, bytes--;
  if (bytes != 2 * kBytes) return false;
  for (size_t i = 0; i < kBytes; i++) {
    const int high = digit(text[2 * i]), low = digit(text[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    secret_[i] = static_cast<unsigned char>(high << 4 | low);
  }
  return true;
}

bool ClusterKey::give_to(SSL_CTX* context) const noexcept {
  static_assert(sizeof(Secret) == kBytes);
  void* const copy = OPENSSL_malloc(sizeof(Secret));
  if (!copy) return false;
  memcpy(copy, secret_, kBytes);
  if (SSL_CTX_set_ex_data(context, secret_index(), copy) != 1) {
    OPENSSL_clear_free(copy, sizeof(Secret));
    return false;
  }
  SSL_CTX_set_session_id_context(context, kName, sizeof kName);
  SSL_CTX_set_psk_use_session_callback(context, offer);
  SSL_CTX_set_psk_find_session_callback(context, look_up);
  return true;
}

}  // namespace coherence::net

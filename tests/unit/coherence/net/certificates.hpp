// Files with keys and certificates, made for a test.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "coherence/transport/net/credentials.hpp"

namespace gcl_test {

class SecretDirectory {
 public:
  SecretDirectory() {
    char name[] = "/tmp/gcl-net-XXXXXX";
    path_ = mkdtemp(name);
  }
  ~SecretDirectory() {
    for (const std::string& file : files_) unlink(file.c_str());
    rmdir(path_.c_str());
  }
  SecretDirectory(const SecretDirectory&) = delete;
  std::string path(const std::string& name) {
    files_.push_back(path_ + "/" + name);
    return files_.back();
  }
  std::string file(const std::string& name, const std::string& text, mode_t mode = 0600) {
    const std::string at = path(name);
    FILE* const to = fopen(at.c_str(), "w");
    EXPECT_EQ(fwrite(text.data(), 1, text.size(), to), text.size());
    fclose(to);
    EXPECT_EQ(chmod(at.c_str(), mode), 0);
    return at;
  }
  std::string key_file(char digit) { return file(std::string("key-") + digit, std::string(64, digit) + "\n"); }

 private:
  std::string path_;
  std::vector<std::string> files_;
};

// A certificate and its key, signed by another, or by itself.
class Certificate {
 public:
  // Valid from so many seconds from now on, until so many seconds from now.
  Certificate(const char* name, const Certificate* ca, long from = -3600, long until = 3600) {
    key = EVP_PKEY_Q_keygen(nullptr, nullptr, "EC", "P-256");
    x509 = X509_new();
    X509_set_version(x509, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(x509), ++serial());
    X509_gmtime_adj(X509_getm_notBefore(x509), from);
    X509_gmtime_adj(X509_getm_notAfter(x509), until);
    X509_set_pubkey(x509, key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(x509), "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(name), -1, -1, 0);
    X509_set_issuer_name(x509, X509_get_subject_name(ca ? ca->x509 : x509));
    if (!ca) {
      X509_EXTENSION* const is_ca = X509V3_EXT_conf_nid(nullptr, nullptr, NID_basic_constraints, "critical,CA:TRUE");
      X509_add_ext(x509, is_ca, -1);
      X509_EXTENSION_free(is_ca);
    }
    EXPECT_GT(X509_sign(x509, ca ? ca->key : key, EVP_sha256()), 0);
  }
  ~Certificate() {
    X509_free(x509);
    EVP_PKEY_free(key);
  }
  Certificate(const Certificate&) = delete;

  std::string certificate_file(SecretDirectory& directory, const std::string& name) const {
    return directory.file(name, text([&](BIO* to) { PEM_write_bio_X509(to, x509); }), 0644);
  }
  std::string key_file(SecretDirectory& directory, const std::string& name, mode_t mode = 0600) const {
    return directory.file(
        name, text([&](BIO* to) { PEM_write_bio_PrivateKey(to, key, nullptr, nullptr, 0, nullptr, nullptr); }), mode);
  }

  X509* x509 = nullptr;
  EVP_PKEY* key = nullptr;

 private:
  static long& serial() {
    static long last = 0;
    return last;
  }
  template <class Write>
  static std::string text(Write write) {
    BIO* const bio = BIO_new(BIO_s_mem());
    write(bio);
    char* at = nullptr;
    const long bytes = BIO_get_mem_data(bio, &at);
    std::string made(at, size_t(bytes));
    BIO_free(bio);
    return made;
  }
};

inline coherence::net::Credentials with_key(SecretDirectory& directory, char digit) {
  coherence::Problem problem;
  auto made = coherence::net::Credentials::of_key_file(directory.key_file(digit).c_str(), &problem);
  EXPECT_TRUE(made.ok()) << problem.text;
  return made.take();
}

inline coherence::net::Credentials with_certificate(SecretDirectory& directory, const Certificate& own,
                                                    const Certificate& ca) {
  coherence::Problem problem;
  auto made = coherence::net::Credentials::of_certificates(own.certificate_file(directory, "c").c_str(),
                                                           own.key_file(directory, "k").c_str(),
                                                           ca.certificate_file(directory, "ca").c_str(), &problem);
  EXPECT_TRUE(made.ok()) << problem.text;
  return made.take();
}

}  // namespace gcl_test

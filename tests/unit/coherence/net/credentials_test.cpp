// Files with secrets: which are read, and which are refused.
#include "coherence/transport/net/credentials.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "certificates.hpp"

namespace gcl_test {

using coherence::Errc;
using coherence::Problem;
using coherence::net::Credentials;

class CredentialsTest : public ::testing::Test {
 protected:
  Errc of_key(const std::string& path) { return Credentials::of_key_file(path.c_str(), &problem).error(); }
  Errc of_certificates(const std::string& certificate, const std::string& key, const std::string& ca) {
    return Credentials::of_certificates(certificate.c_str(), key.c_str(), ca.c_str(), &problem).error();
  }
  bool says(const char* what) const { return std::string(problem.text).find(what) != std::string::npos; }
  SecretDirectory directory;
  Problem problem;
};

TEST_F(CredentialsTest, AKeyHas64Digits) {
  const std::string digits = "0123456789abcdefABCDEF0123456789abcdefABCDEF0123456789abcdefABCD";
  EXPECT_EQ(of_key(directory.file("right", digits)), Errc::kOk) << problem.text;
  EXPECT_EQ(of_key(directory.file("blanks", "\n " + digits + "\r\n")), Errc::kOk) << problem.text;
  for (const std::string& wrong : {digits + "0", digits.substr(1), digits.substr(1) + "g", digits + " x", std::string(),
                                   std::string(40'000, '0')}) {
    problem.text[0] = 0;
    EXPECT_EQ(of_key(directory.file("wrong", wrong)), Errc::kIncompatible);
    EXPECT_TRUE(says("/wrong"));
    EXPECT_FALSE(says("0123456789abcdef")) << "no secret is shown: " << problem.text;
  }
}

TEST_F(CredentialsTest, AKeyThatOthersCanReadIsRefused) {
  const std::string path = directory.key_file('a');
  for (const mode_t mode : {0640, 0604, 0660, 0602, 0610, 0644, 0666}) {
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
    EXPECT_EQ(of_key(path), Errc::kIncompatible) << std::oct << mode;
    EXPECT_TRUE(says("0600")) << problem.text;
  }
  for (const mode_t mode : {0600, 0400}) {
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
    EXPECT_EQ(of_key(path), Errc::kOk) << problem.text;
  }
}

TEST_F(CredentialsTest, AKeyIsARegularFile) {
  EXPECT_EQ(of_key(directory.path("none")), Errc::kNotFound);
  const std::string pipe = directory.path("pipe");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(of_key(pipe), Errc::kIncompatible) << "and nobody waits for a writer";
  EXPECT_EQ(of_key("/tmp"), Errc::kIncompatible);
}

TEST_F(CredentialsTest, CertificatesAreReadWithTheirKeys) {
  const Certificate ca("ca", nullptr), ours("ours", &ca), other("other", &ca);
  const std::string certificate = ours.certificate_file(directory, "c"),
                    authority = ca.certificate_file(directory, "ca");
  EXPECT_EQ(of_certificates(certificate, ours.key_file(directory, "k"), authority), Errc::kOk) << problem.text;
  EXPECT_EQ(of_certificates(certificate, other.key_file(directory, "o"), authority), Errc::kIncompatible);
  EXPECT_TRUE(says("the key is not the certificate's")) << problem.text;
  EXPECT_EQ(of_certificates(certificate, ours.key_file(directory, "r", 0644), authority), Errc::kIncompatible);
  EXPECT_TRUE(says("0600")) << problem.text;
  EXPECT_EQ(of_certificates(directory.path("none"), ours.key_file(directory, "k"), authority), Errc::kIncompatible);
  EXPECT_EQ(of_certificates(certificate, ours.key_file(directory, "k"), directory.path("none")), Errc::kIncompatible);
}

TEST_F(CredentialsTest, OnesOwnCertificateThatHasExpiredIsRefused) {
  const Certificate ca("ca", nullptr), old("old", &ca, -7200, -3600);
  EXPECT_EQ(of_certificates(old.certificate_file(directory, "c"), old.key_file(directory, "k"),
                            ca.certificate_file(directory, "ca")),
            Errc::kIncompatible);
  EXPECT_TRUE(says("has expired")) << problem.text;
}

TEST_F(CredentialsTest, PlainIsForThisMachine) {
  EXPECT_TRUE(Credentials::plain().fit(true, "127.0.0.1:1", &problem).ok());
  EXPECT_EQ(Credentials::plain().fit(false, "10.0.0.1:1", &problem).error(), Errc::kIncompatible);
  EXPECT_TRUE(says("10.0.0.1:1")) << problem.text;
}

}  // namespace gcl_test

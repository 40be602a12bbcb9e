// Addresses, and what is said about what is none.
#include "coherence/transport/net/address.hpp"

#include <gtest/gtest.h>

#include <string>

#include "coherence/transport/net/quoted.hpp"

namespace gcl_test {

using coherence::Errc;
using coherence::Problem;
using coherence::Result;
using coherence::net::Address;
using coherence::net::Endpoints;
using coherence::net::Quoted;

namespace {

Endpoints resolve(const char* text) {
  Problem problem;
  const Result<Address> address = Address::parse(text, &problem);
  EXPECT_TRUE(address.ok()) << problem.text;
  Result<Endpoints> found = address->resolve(&problem);
  EXPECT_TRUE(found.ok()) << problem.text;
  return *found;
}

std::string why_not(std::string_view text) {
  Problem problem;
  const Result<Address> address = Address::parse(text, &problem);
  EXPECT_FALSE(address.ok()) << text;
  EXPECT_EQ(address.error(), Errc::kIncompatible);
  return std::string(problem.text).substr(std::string(problem.text).rfind("): ") + 3);
}

}  // namespace

TEST(AddressTest, IsResolvedAndNamedAgain) {
  EXPECT_STREQ(resolve("127.0.0.1:5555").at[0].name().text, "127.0.0.1:5555");
  EXPECT_STREQ(resolve("[::1]:80").at[0].name().text, "[::1]:80");
  EXPECT_STREQ(resolve("unix:/run/gcl/m1").at[0].name().text, "unix:/run/gcl/m1");
  EXPECT_EQ(resolve("localhost:1").at[0].port(), 1);
}

TEST(AddressTest, OnlyLoopbackAndUnixAreLocal) {
  for (const char* text : {"127.0.0.1:1", "127.8.9.1:1", "[::1]:1", "[::ffff:127.0.0.1]:1", "unix:/a", "localhost:1"})
    EXPECT_TRUE(resolve(text).local()) << text;
  for (const char* text : {"10.0.0.1:1", "0.0.0.0:1", "[::]:1", "[::ffff:10.0.0.1]:1", "[fe80::1]:1", "128.0.0.1:1"})
    EXPECT_FALSE(resolve(text).local()) << text;
}

TEST(AddressTest, HostsAreTold) {
  EXPECT_TRUE(resolve("127.0.0.1:1").at[0].same_host(resolve("127.0.0.1:2").at[0]));
  EXPECT_FALSE(resolve("127.0.0.1:1").at[0].same_host(resolve("127.0.0.2:1").at[0]));
  EXPECT_TRUE(resolve("[2001:db8::1]:1").at[0].same_host(resolve("[2001:db8::2]:1").at[0])) << "one /64";
  EXPECT_FALSE(resolve("[2001:db8::1]:1").at[0].same_host(resolve("[2001:db8:0:1::1]:1").at[0]));
  EXPECT_FALSE(resolve("[::1]:1").at[0].same_host(resolve("127.0.0.1:1").at[0]));
}

TEST(AddressTest, WhatIsNoneIsRefusedWithTheReason) {
  EXPECT_EQ(why_not(""), "it is empty");
  EXPECT_EQ(why_not("host"), "the port is missing");
  EXPECT_EQ(why_not("host:"), "the port is no number from 0 to 65535");
  EXPECT_EQ(why_not("host:65536"), "the port is no number from 0 to 65535");
  EXPECT_EQ(why_not("host:-1"), "the port is no number from 0 to 65535");
  EXPECT_EQ(why_not("host:80x"), "the port is no number from 0 to 65535");
  EXPECT_EQ(why_not(":80"), "the host is missing, or too long");
  EXPECT_EQ(why_not("::1:80"), "an IPv6 address is written in brackets");
  EXPECT_EQ(why_not("[host]:80"), "what is in brackets is no IPv6 address");
  EXPECT_EQ(why_not("a b:80"), "no host has such a name");
  EXPECT_EQ(why_not("unix:run"), "the path does not begin with /");
  EXPECT_EQ(why_not("unix:/" + std::string(200, 'x')), "the path has more than 107 bytes");
  EXPECT_EQ(why_not(std::string(300, 'x') + ":1"), "it is too long, or has a zero byte");
  EXPECT_EQ(why_not(std::string_view("a\0b:1", 5)), "it is too long, or has a zero byte");
}

TEST(AddressTest, AnUnknownNameIsToldWithIt) {
  Problem problem;
  const Result<Endpoints> found = Address::parse("no-such-host.invalid:1", &problem)->resolve(&problem);
  EXPECT_EQ(found.error(), Errc::kNotFound);
  EXPECT_NE(std::string(problem.text).find("no-such-host.invalid:1"), std::string::npos);
}

TEST(QuotedTest, EscapesWhatIsNotPrintableAndCutsOff) {
  EXPECT_STREQ(Quoted("plain text").text, "plain text");
  EXPECT_STREQ(Quoted("a\x1b[31m\n\\\xff").text, "a\\x1b[31m\\x0a\\x5c\\xff");
  const std::string cut = Quoted(std::string(1000, '\n')).text;
  EXPECT_LT(cut.size(), sizeof(Quoted::text));
  EXPECT_EQ(cut.substr(cut.size() - 3), "...");
}

}  // namespace gcl_test

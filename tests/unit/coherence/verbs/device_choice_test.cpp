// Which RDMA port and GID a process uses: verbs.gid-of-address.
#include "coherence/transport/verbs/device_choice.hpp"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <cstring>
#include <string>
#include <vector>

namespace coherence::verbs {
namespace {

net::Endpoint endpoint(const std::string& text) {
  Problem problem;
  auto address = net::Address::parse(text, &problem);
  EXPECT_TRUE(address.ok()) << problem.text;
  auto endpoints = address->resolve(&problem);
  EXPECT_TRUE(endpoints.ok()) << problem.text;
  return endpoints->at[0];
}

PortGid gid(const std::string& device, int index, const std::string& address) {
  PortGid one;
  one.device = device;
  one.index = index;
  const std::string mapped = address.find(':') == std::string::npos ? "::ffff:" + address : address;
  EXPECT_EQ(inet_pton(AF_INET6, mapped.c_str(), one.gid), 1);
  return one;
}

// Of two ports, each with what a kernel makes: link-local first, then one for each address, v1 and v2.
std::vector<PortGid> two_devices() {
  std::vector<PortGid> all = {gid("one", 0, "fe80::1"),  gid("one", 1, "fe80::1"), gid("one", 2, "10.0.0.1"),
                              gid("one", 3, "10.0.0.1"), gid("two", 0, "fe80::2"), gid("two", 1, "10.0.0.2"),
                              gid("two", 2, "fd00::2")};
  all[0].v2 = all[2].v2 = false;
  return all;
}

std::string chosen(const std::vector<PortGid>& all, const DeviceSettings& settings, const std::string& near) {
  Problem problem;
  const auto place = choose_gid(all, settings, endpoint(near), &problem);
  if (!place) return problem.text;
  return all[*place].device + "/" + std::to_string(all[*place].index);
}

}  // namespace

TEST(VerbsDeviceChoice, TheGidIsTheAddressInItsNewerKind) {
  EXPECT_EQ(chosen(two_devices(), {}, "10.0.0.1:5"), "one/3");
  EXPECT_EQ(chosen(two_devices(), {}, "10.0.0.2:5"), "two/1");
  EXPECT_EQ(chosen(two_devices(), {}, "[fd00::2]:5"), "two/2");
}

TEST(VerbsDeviceChoice, WhatIsSaidCounts) {
  EXPECT_EQ(chosen(two_devices(), {.device = "two"}, "10.0.0.1:5"), "two/1") << "a network of its own";
  EXPECT_EQ(chosen(two_devices(), {.device = "one", .gid_index = 2}, "10.0.0.1:5"), "one/2");
  EXPECT_EQ(chosen(two_devices(), {.device = "one", .port = 1}, "127.0.0.1:5"), "one/3");
}

TEST(VerbsDeviceChoice, NothingIsGuessed) {
  const std::string said = chosen(two_devices(), {}, "10.0.0.9:5");
  EXPECT_NE(said.find("10.0.0.9:5"), std::string::npos) << said;
  EXPECT_NE(said.find("one, two"), std::string::npos) << said;
  EXPECT_NE(chosen(two_devices(), {}, "unix:/x").find("several ports"), std::string::npos);
  EXPECT_NE(chosen(two_devices(), {.device = "three"}, "10.0.0.1:5").find("three; there are one, two"),
            std::string::npos);
  EXPECT_NE(chosen(two_devices(), {.device = "one", .gid_index = 9}, "10.0.0.1:5").find("GID 9"), std::string::npos);
  EXPECT_NE(chosen({}, {}, "10.0.0.1:5").find("no RDMA device"), std::string::npos);
}

TEST(VerbsDeviceChoice, OnlyActivePortsCount) {
  std::vector<PortGid> all = two_devices();
  for (PortGid& one : all) one.active = one.device == "two";
  EXPECT_EQ(chosen(all, {}, "127.0.0.1:5"), "two/1") << "the only one that is left";
  EXPECT_NE(chosen(all, {.device = "one"}, "10.0.0.1:5").find("no RDMA port is active"), std::string::npos);
}

TEST(VerbsDeviceChoice, OverInfinibandTheOnlyPortIsTaken) {
  PortGid one = gid("ib", 0, "fe80::5");
  one.infiniband = true;
  one.v2 = false;
  EXPECT_EQ(chosen({one}, {}, "10.0.0.1:5"), "ib/0");
}

TEST(VerbsDeviceChoice, AGidIsShownAsTheAddressThatItIs) {
  EXPECT_STREQ(GidText(gid("one", 0, "10.0.0.1").gid).text, "10.0.0.1");
  EXPECT_STREQ(GidText(gid("one", 0, "fd00::2").gid).text, "fd00::2");
}

}  // namespace coherence::verbs

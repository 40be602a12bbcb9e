// What a device's events mean for queue pairs.
#include "coherence/transport/verbs/device.hpp"

#include <gtest/gtest.h>

namespace coherence::verbs {
namespace {

TEST(Device, WhatItGivesUpIsLostAtOnce) {
  for (const auto type : {IBV_EVENT_QP_FATAL, IBV_EVENT_QP_REQ_ERR, IBV_EVENT_QP_ACCESS_ERR})
    EXPECT_EQ(lost_by(type), Lost::kPair) << ibv_event_type_str(type);
  EXPECT_EQ(lost_by(IBV_EVENT_CQ_ERR), Lost::kQueue);
  EXPECT_EQ(lost_by(IBV_EVENT_DEVICE_FATAL), Lost::kAll);
}

TEST(Device, APortThatGoesAndComesLosesNothing) {
  for (const auto type : {IBV_EVENT_COMM_EST, IBV_EVENT_PORT_ERR, IBV_EVENT_PORT_ACTIVE, IBV_EVENT_GID_CHANGE})
    EXPECT_EQ(lost_by(type), Lost::kNothing) << ibv_event_type_str(type);
}

}  // namespace
}  // namespace coherence::verbs

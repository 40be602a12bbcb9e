// What the other end of a queue pair says is believed in no byte (tcp.nothing-believed).
#include "coherence/transport/verbs/path_frame.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>

namespace coherence::verbs {
namespace {

PathEnd good() {
  PathEnd end;
  end.number = 17;
  end.first = 0xabcdef;
  end.key = 5;
  end.mtu = 3;
  end.reads = 16;
  end.gid[15] = 1;
  return end;
}

}  // namespace

TEST(VerbsPathFrame, WhatIsSentArrives) {
  const PathEnd sent = good();
  PathEnd end;
  Problem problem;
  ASSERT_TRUE(decode_path_end(bytes_of(sent), &end, &problem)) << problem.text;
  EXPECT_EQ(memcmp(&sent, &end, sizeof end), 0);
}

TEST(VerbsPathFrame, WhatNoEndCanHaveIsRefused) {
  const std::function<void(PathEnd&)> changes[] = {
      [](PathEnd& end) { end.number = 0; },       [](PathEnd& end) { end.number = 1; },
      [](PathEnd& end) { end.number = 1 << 24; }, [](PathEnd& end) { end.first = 1 << 24; },
      [](PathEnd& end) { end.mtu = 0; },          [](PathEnd& end) { end.mtu = 6; },
      [](PathEnd& end) { end.reads = 0; },        [](PathEnd& end) { end.infiniband = 2; },
      [](PathEnd& end) { end.zero[2] = 1; },
  };
  for (const auto& change : changes) {
    PathEnd sent = good(), end;
    change(sent);
    Problem problem;
    EXPECT_EQ(decode_path_end(bytes_of(sent), &end, &problem).error(), Errc::kCorrupt);
    EXPECT_NE(problem.text[0], '\0');
  }
  for (size_t bytes = 0; bytes < sizeof(PathEnd); bytes++) {
    const PathEnd sent = good();
    PathEnd end;
    Problem problem;
    EXPECT_EQ(decode_path_end(bytes_of(sent).first(bytes), &end, &problem).error(), Errc::kCorrupt) << bytes;
  }
}

TEST(VerbsPathFrame, AnotherFormatIsSaidToBeOne) {
  PathEnd sent = good(), end;
  sent.format = kPathFormat + 1;
  Problem problem;
  EXPECT_EQ(decode_path_end(bytes_of(sent), &end, &problem).error(), Errc::kIncompatible);
}

}  // namespace coherence::verbs

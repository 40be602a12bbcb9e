// The checker of histories, by litmus tests: what it must accept, and what it must not.
#include "history.hpp"

#include <gtest/gtest.h>

namespace sim {
namespace {

constexpr int kX = 0, kY = 1;

void replace(History& h, int fiber, int page, uint64_t was, uint64_t is) {
  h.read(fiber, page, was);
  h.write(fiber, page, is);
}

TEST(History, OneAfterTheOther) {
  History h;
  replace(h, 0, kX, 0, 1);
  replace(h, 1, kX, 1, 2);
  h.read(2, kX, 0);
  h.read(2, kX, 1);
  h.read(2, kX, 2);
  EXPECT_EQ(h.explain(), "");
}

TEST(History, AReaderMayBeLateButNotGoBack) {
  History late, back;
  for (History* h : {&late, &back}) replace(*h, 0, kX, 0, 1);
  late.read(1, kX, 0);
  EXPECT_EQ(late.explain(), "");
  back.read(1, kX, 1);
  back.read(1, kX, 0);
  EXPECT_NE(back.explain(), "");
}

TEST(History, StoreBuffering) {
  History h;
  replace(h, 0, kX, 0, 1);
  h.read(0, kY, 0);
  replace(h, 1, kY, 0, 2);
  h.read(1, kX, 0);
  EXPECT_NE(h.explain(), "");
}

TEST(History, MessagePassing) {
  History h;
  replace(h, 0, kX, 0, 1);
  replace(h, 0, kY, 0, 2);
  h.read(1, kY, 2);
  h.read(1, kX, 0);
  EXPECT_NE(h.explain(), "");
}

TEST(History, TwoReadersMayNotDisagreeAboutTwoWriters) {
  History h;
  replace(h, 0, kX, 0, 1);
  replace(h, 1, kY, 0, 2);
  h.read(2, kX, 1);
  h.read(2, kY, 0);
  h.read(3, kY, 2);
  h.read(3, kX, 0);
  EXPECT_NE(h.explain(), "");
}

TEST(History, LostUpdate) {
  History h;
  replace(h, 0, kX, 0, 1);
  replace(h, 1, kX, 0, 2);
  EXPECT_NE(h.explain(), "");
}

TEST(History, AValueFromNowhere) {
  History h;
  h.read(0, kX, 7);
  EXPECT_NE(h.explain(), "");
}

}  // namespace
}  // namespace sim

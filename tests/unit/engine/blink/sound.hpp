// What the checker says of a tree, which must be sound.
#pragma once

#include <gtest/gtest.h>

#include <memory>

#include "extension/engine/blink/check.hpp"
#include "tests/unit/engine/blink/keys.hpp"

namespace engine::blink {

inline CheckReport sound(const Tree& tree, bufmgr::Session& session) {
  gcl_test::TestOrder order;
  auto report = std::make_unique<Checker>(tree, session, order)->run();
  EXPECT_TRUE(report.ok()) << errc_name(report.error());
  if (!report.ok()) return {};
  EXPECT_TRUE(report->sound) << report->what << " on page " << report->page.raw;
  return *report;
}

}  // namespace engine::blink

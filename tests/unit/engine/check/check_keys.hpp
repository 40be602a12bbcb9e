// Keys of keys.hpp as the checker asks about them; one of 315 bytes is malformed.
#pragma once

#include "extension/engine/check/node_check.hpp"
#include "tests/unit/engine/blink/keys.hpp"

namespace engine_test {

class TestKeys final : public engine::KeySeam {
 public:
  int operator()(std::span<const std::byte> a, std::span<const std::byte> b) override { return order_(a, b); }
  const char* defect(std::span<const std::byte> key) override { return key.size() == kMalformed ? "too odd" : nullptr; }
  static constexpr size_t kMalformed = 315;

 private:
  gcl_test::TestOrder order_;
};

}  // namespace engine_test

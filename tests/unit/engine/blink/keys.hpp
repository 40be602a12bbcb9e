// Keys of the tests: a number and a text, the second attribute of which suffix truncation may cut off.
//
//   0..5  tid | 6..7 attributes | 8..15 number | 16.. text
#pragma once

#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "extension/engine/blink/check.hpp"
#include "extension/engine/blink/scan.hpp"
#include "extension/engine/blink/tree.hpp"

namespace gcl_test {

using engine::Tid;

struct TestKey {
  uint64_t number = 0;
  std::string text;
  auto operator<=>(const TestKey&) const = default;

  std::vector<std::byte> image() const {
    std::vector<std::byte> bytes(16 + text.size());
    const uint16_t attributes = 2;
    std::memcpy(bytes.data() + 6, &attributes, 2);
    std::memcpy(bytes.data() + 8, &number, 8);
    std::memcpy(bytes.data() + 16, text.data(), text.size());
    return bytes;
  }
};

struct KeyView {
  uint16_t attributes;
  uint64_t number;
  std::string_view text;
  explicit KeyView(std::span<const std::byte> key) {
    std::memcpy(&attributes, key.data() + 6, 2);
    std::memcpy(&number, key.data() + 8, 8);
    text = {reinterpret_cast<const char*>(key.data()) + 16, key.size() - 16};
  }
  TestKey key() const { return {number, std::string(text)}; }
};

// What the comparator searches for: a key, or its number only.
struct Search {
  const TestKey* key;
  bool number_only = false;
};

class TestComparator : public engine::blink::Comparator {
 public:
  explicit TestComparator(bool shortens = true) : shortens_(shortens) {}
  int compare(const void* search, std::span<const std::byte> bytes) override {
    const auto& wanted = *static_cast<const Search*>(search);
    const KeyView found(bytes);
    if (wanted.key->number != found.number) return wanted.key->number < found.number ? -1 : 1;
    if (wanted.number_only) return 0;
    if (found.attributes < 2) return 1;
    return wanted.key->text.compare(found.text);
  }
  // The number decides most of the time; equal ones leave it to the text.
  engine::blink::IntegerOrder integer_order(const void* search) noexcept override {
    const auto& wanted = *static_cast<const Search*>(search);
    return {.decides = true, .alone = wanted.number_only, .number = int64_t(wanted.key->number)};
  }
  uint32_t equal_parts(std::span<const std::byte> left, std::span<const std::byte> right) override {
    const KeyView l(left), r(right);
    if (l.number != r.number) return 0;
    return l.text != r.text ? 1 : kAllParts;
  }
  uint32_t shorten(std::span<const std::byte> left, std::span<const std::byte> right, std::byte* to) override {
    if (!shortens_) return 0;
    const KeyView l(left), r(right);
    if (l.number == r.number && l.text == r.text) return 0;
    const bool by_number = l.number != r.number;
    uint32_t bytes = by_number ? 16 : uint32_t(right.size());
    std::memcpy(to, right.data(), bytes);
    if (by_number && right.size() == 16) std::memset(to + std::exchange(bytes, 18u), 0, 2);  // longer than the key
    const uint16_t attributes = by_number ? 1 : 2;
    std::memcpy(to + 6, &attributes, 2);
    return bytes;
  }

 private:
  bool shortens_;
};

// Gives the others a chance to change what is being compared.
class SlowComparator final : public TestComparator {
 public:
  int compare(const void* search, std::span<const std::byte> key) override {
    if (++calls_ % 32 == 0) std::this_thread::yield();
    return TestComparator::compare(search, key);
  }
  // Some of a page's keys are judged where they lie, some (every other line pointer's) by a copy.
  engine::blink::IntegerOrder integer_order(const void* search) noexcept override {
    if (++calls_ % 32 == 0) std::this_thread::yield();
    engine::blink::IntegerOrder order = TestComparator::integer_order(search);
    order.unless = uint64_t{1} << 32;
    return order;
  }

 private:
  uint32_t calls_ = 0;
};

class TestOrder final : public engine::blink::KeyOrder {
 public:
  int operator()(std::span<const std::byte> a, std::span<const std::byte> b) override {
    const KeyView x(a), y(b);
    if (x.number != y.number) return x.number < y.number ? -1 : 1;
    if (x.attributes != y.attributes) return x.attributes < y.attributes ? -1 : 1;
    return x.attributes < 2 ? 0 : x.text.compare(y.text);
  }
};

inline Tid tid_of(uint64_t n) { return {uint32_t(n / 200), uint16_t(1 + n % 200)}; }
inline uint64_t number_of(Tid tid) { return uint64_t{tid.block} * 200 + tid.offset - 1; }

inline coherence::Result<engine::blink::InsertResult> put(engine::blink::Tree& tree, bufmgr::Session& session,
                                                          engine::blink::Comparator& compare, const TestKey& key,
                                                          Tid tid,
                                                          engine::blink::Unique unique = engine::blink::Unique::kNo,
                                                          engine::blink::UniqueProbe* probe = nullptr) {
  const Search search{&key};
  const auto image = key.image();
  return tree.insert(session, compare, &search, image, tid, unique, probe);
}

}  // namespace gcl_test

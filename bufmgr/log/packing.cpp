#include "bufmgr/log/packing.hpp"

#include <algorithm>
#include <bit>

namespace bufmgr {
namespace {

// Words after a tag of all ones: other ones, or that one again.
constexpr uint32_t kRunMax = 127, kRepeatsMax = 128;

uint64_t word_at(const std::byte* from, uint32_t count) noexcept {
  uint64_t word = 0;
  std::memcpy(&word, from, count);
  return word;
}

uint64_t word_at(const std::byte* from) noexcept {
  uint64_t word;
  std::memcpy(&word, from, sizeof word);
  return word;
}

// The top bit of each byte that is not zero.
constexpr uint64_t kTops = 0x8080808080808080;
uint64_t not_zero(uint64_t word) noexcept { return (((word & ~kTops) + ~kTops) | word) & kTops; }

// The tag and the bytes that are not zero.
std::byte* put_mixed(std::byte* to, uint64_t word, uint64_t tops) noexcept {
  constexpr uint64_t kGather = 0x0102040810204080;  // bit 0 of byte n to bit 56 + n
  *to++ = std::byte(((tops >> 7) * kGather) >> 56);
  for (; tops != 0; tops &= tops - 1) *to++ = std::byte(word >> (std::countr_zero(tops) & 56));
  return to;
}

// How often the eight bytes come again at once; at most kRepeatsMax.
uint32_t repeats(uint64_t word, const std::byte* from, uint32_t count) noexcept {
  uint32_t times = 0;
  for (; times < kRepeatsMax && count >= 8 && word_at(from) == word; ++times, from += 8, count -= 8) {
  }
  return times;
}

}  // namespace

uint32_t pack(std::byte* to, const std::byte* from, uint32_t count, uint32_t limit) noexcept {
  std::byte* const first = to;
  while (count != 0) {
    if (uint32_t(to - first) >= limit) return 0;
    const uint32_t part = std::min(count, 8u);
    const uint64_t word = part == 8 ? word_at(from) : word_at(from, part);
    from += part;
    count -= part;
    const uint64_t tops = not_zero(word);
    if (tops != kTops) {
      to = put_mixed(to, word, tops);
    } else {
      *to++ = std::byte{0xff};
      std::memcpy(to, &word, 8);
      to += 8;
      std::byte* const run = to++;
      if (const uint32_t times = repeats(word, from, count); times != 0) {
        *run = std::byte(kRunMax + times);
        from += size_t{times} * 8;
        count -= times * 8;
        continue;
      }
      uint32_t words = 0;
      for (; count >= 8 && words < kRunMax && uint32_t(to - first) < limit; ++words) {
        const uint64_t next = word_at(from);
        // Three equal ones are a run of their own.
        if (not_zero(next) != kTops || (count >= 24 && repeats(next, from + 8, 16) == 2)) break;
        std::memcpy(to, &next, 8);
        to += 8;
        from += 8;
        count -= 8;
      }
      *run = std::byte(words);
    }
  }
  return uint32_t(to - first) < limit ? uint32_t(to - first) : 0;
}

const std::byte* unpack(const std::byte* at, const std::byte* end, std::byte* to, uint32_t count) noexcept {
  while (count != 0) {
    if (at == end) return nullptr;
    const auto tag = uint8_t(*at++);
    if (end - at < std::popcount(tag)) return nullptr;
    std::byte word[8] = {};
    for (uint32_t i = 0; i < 8; ++i)
      if (tag >> i & 1) word[i] = *at++;
    const uint32_t part = std::min(count, 8u);
    // What would lie behind the last byte is zero.
    if (part < 8 && tag >> part != 0) return nullptr;
    if (to != nullptr) {
      std::memcpy(to, word, part);
      to += part;
    }
    count -= part;
    if (tag != 0xff) continue;
    if (at == end) return nullptr;
    const auto words = uint32_t(*at++);
    const bool again = words > kRunMax;
    const uint32_t run = (again ? words - kRunMax : words) * 8;
    if (run > count || (!again && end - at < ptrdiff_t(run))) return nullptr;
    count -= run;
    if (to != nullptr) {
      for (uint32_t i = 0; i < run; i += 8) std::memcpy(to + i, again ? word : at + i, 8);
      to += run;
    }
    if (!again) at += run;
  }
  return at;
}

}  // namespace bufmgr

#include "coherence/base/crc32c.hpp"

#include <array>
#include <cstring>

namespace coherence {
namespace {

constexpr std::array<uint32_t, 256> make_crc_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = value & 1 ? value >> 1 ^ 0x82f63b78 : value >> 1;
    table[i] = value;
  }
  return table;
}
constexpr auto kCrcTable = make_crc_table();

uint32_t crc_portable(uint32_t crc, const unsigned char* bytes, size_t count) {
  for (; count != 0; ++bytes, --count) crc = kCrcTable[(crc ^ *bytes) & 0xff] ^ crc >> 8;
  return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) uint32_t crc_hardware(uint32_t crc, const unsigned char* bytes, size_t count) {
  uint64_t wide = crc;
  for (; count >= 8; bytes += 8, count -= 8) {
    uint64_t word;
    std::memcpy(&word, bytes, 8);
    wide = __builtin_ia32_crc32di(wide, word);
  }
  auto narrow = uint32_t(wide);
  for (; count != 0; ++bytes, --count) narrow = __builtin_ia32_crc32qi(narrow, *bytes);
  return narrow;
}
#endif

}  // namespace

uint32_t crc32c(uint32_t seed, const void* bytes, size_t count) noexcept {
  const auto* at = static_cast<const unsigned char*>(bytes);
#if defined(__x86_64__)
  static const bool hardware = __builtin_cpu_supports("sse4.2");
  if (hardware) return ~crc_hardware(~seed, at, count);
#endif
  return ~crc_portable(~seed, at, count);
}

}  // namespace coherence

// CRC-32C (Castagnoli), as storage and networks use it; with the processor's instruction where there is one.
#pragma once

#include <cstddef>
#include <cstdint>

namespace coherence {

// `seed` is 0, or the checksum of the bytes that come before these.
uint32_t crc32c(uint32_t seed, const void* bytes, size_t count) noexcept;

}  // namespace coherence

// The version of this library, which the build states once (CMakeLists.txt).
#pragma once

namespace gcl {

extern const char* const kVersion;  // "1.1"

}  // namespace gcl

// The version of this library, which the build states once (CMakeLists.txt).
#pragma once

namespace gcl {

inline constexpr const char* kVersion = GCL_VERSION;

}  // namespace gcl

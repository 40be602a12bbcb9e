#include "extension/pg/runtime/version.hpp"

namespace gcl {

const char* const kVersion = GCL_VERSION;

}  // namespace gcl

// The daemon of one memory node: serves its file until a signal ends it.
#pragma once

#include "tools/memnode/options.hpp"

namespace memnode {

// Its exit code; what happens, and why it cannot go on, is on stderr.
int serve(const Options&);
// Whether it could be served: says what would be, and binds nothing.
int check(const Options&);

}  // namespace memnode

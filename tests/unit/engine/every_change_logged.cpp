// Every cluster of this program, whatever it tests: the pages that it leaves are what its redo makes out of nothing
// (recovery.every-change-logged).  ThreadSanitizer's program is not watched: a watcher's mutexes would order what the
// nodes must order themselves.
#include "tests/support/redo_shadow.hpp"

namespace engine_test {
namespace {

#ifndef __SANITIZE_THREAD__
const bool watched = [] {
  gcl_test::ClusterWatcher::make = []() -> std::unique_ptr<gcl_test::ClusterWatcher> {
    return std::make_unique<gcl_test::RedoShadow>();
  };
  return true;
}();
#endif

}  // namespace
}  // namespace engine_test

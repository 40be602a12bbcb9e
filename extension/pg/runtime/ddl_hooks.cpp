#include "extension/pg/runtime/ddl_hooks.hpp"

namespace gcl {

static DdlHooks installed{};

void install(const DdlHooks& hooks) { installed = hooks; }

void ddl_require_serving() {
  if (installed.require_serving != nullptr) installed.require_serving();
}
bool ddl_serving() noexcept { return installed.serving != nullptr && installed.serving(); }
const volatile bool* ddl_serving_flag() noexcept { return installed.serving_flag(); }
bool ddl_replaying() noexcept { return installed.replaying != nullptr && installed.replaying(); }
void ddl_wake_waits() noexcept {
  if (installed.wake_waits != nullptr) installed.wake_waits();
}

}  // namespace gcl

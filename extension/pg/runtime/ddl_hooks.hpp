// What the layers below ask of ddl/, which answers through hooks: they do not know it.
#pragma once

namespace gcl {

struct DdlHooks {
  void (*require_serving)();
  bool (*serving)() noexcept;
  const volatile bool* (*serving_flag)() noexcept;
  bool (*replaying)() noexcept;
  void (*wake_waits)() noexcept;
};
void install(const DdlHooks& hooks);  // from _PG_init; without, this server serves nothing

// Before a client's first touch of a gcl table, and of DDL: raises 55000 if this primary has not caught up.
void ddl_require_serving();
bool ddl_serving() noexcept;
const volatile bool* ddl_serving_flag() noexcept;  // the same of all databases, where it stands

// Whether this process is running another primary's statement: then nothing is made in, or freed from, the pool.
bool ddl_replaying() noexcept;

// Processes that wait in DDL look again what has become of their wait.
void ddl_wake_waits() noexcept;

}  // namespace gcl

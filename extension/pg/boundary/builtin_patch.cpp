#include "extension/pg/boundary/builtin_patch.hpp"

#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

extern "C" {
#include "miscadmin.h"
#include "storage/fd.h"
#include "utils/fmgrtab.h"
#include "utils/guc.h"
}

namespace gcl {
namespace {

constexpr int kReplacedMax = 32;
Oid replaced[kReplacedMax];
int replaced_count = 0;
needs_fmgr_hook_type next_needs_hook = nullptr;

// (boundary.jit-asks-table)
bool is_to_be_seen(Oid function) {
  for (int i = 0; i < replaced_count; ++i)
    if (replaced[i] == function) return true;
  return next_needs_hook != nullptr && next_needs_hook(function);
}

void note_replaced(Oid function) {
  if (replaced_count == kReplacedMax) refuse_server("Too many built-in functions are replaced.");
  replaced[replaced_count++] = function;
  if (replaced_count > 1) return;  // the hook has been there since the first
  next_needs_hook = needs_fmgr_hook;
  needs_fmgr_hook = is_to_be_seen;
}

[[noreturn]] void refuse(const Builtin& builtin, const char* what) {
  refuse_server(psprintf("The built-in function %s %s.", builtin.name, what));
}

PGFunction* checked_entry(const Builtin& builtin) {
  const uint16 at =
      builtin.oid <= fmgr_last_builtin_oid ? fmgr_builtin_oid_index[builtin.oid] : InvalidOidBuiltinMapping;
  if (at == InvalidOidBuiltinMapping || at >= fmgr_nbuiltins) refuse(builtin, "is not in the server's table");
  const FmgrBuiltin& entry = fmgr_builtins[at];
  if (entry.foid != builtin.oid) refuse(builtin, "has an entry with another object id");
  if (entry.funcName == nullptr || strcmp(entry.funcName, builtin.name) != 0) refuse(builtin, "has another name");
  if (entry.func != builtin.native) refuse(builtin, "was changed by another module");
  if (entry.nargs != builtin.nargs || entry.strict != builtin.strict || entry.retset)
    refuse(builtin, "has another signature");
  if (reinterpret_cast<uintptr_t>(&entry.func) % alignof(PGFunction) != 0) refuse(builtin, "is not aligned");
  return const_cast<PGFunction*>(&entry.func);
}

// Whether the kernel maps `at` readable and not writable.
bool is_read_only(const void* at) {
  FILE* maps = AllocateFile("/proc/self/maps", "r");
  if (maps == nullptr) refuse_server("/proc/self/maps cannot be read.");
  char line[512];
  bool found = false;
  while (!found && fgets(line, sizeof line, maps) != nullptr) {
    uintptr_t from, to;
    char mode[8];
    if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &from, &to, mode) != 3) continue;
    const auto address = reinterpret_cast<uintptr_t>(at);
    found = from <= address && address < to && mode[0] == 'r' && mode[1] == '-';
  }
  FreeFile(maps);
  return found;
}

void store(PGFunction* slot, PGFunction function) {
  const auto page_bytes = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  auto* page = reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(slot) & ~(page_bytes - 1));
  if (mprotect(page, page_bytes, PROT_READ | PROT_WRITE) != 0) {
    refuse_server(psprintf("The table of built-in functions cannot be made writable: %m."));
  }
  __atomic_store_n(slot, function, __ATOMIC_RELEASE);
  if (mprotect(page, page_bytes, PROT_READ) != 0) {
    refuse_server(psprintf("The table of built-in functions cannot be made read-only again: %m."));
  }
}

}  // namespace

// Every refusal looks the same to the administrator: what was expected, and the two ways out.
void refuse_server(const char* what) {
  ereport(FATAL, errcode(ERRCODE_FEATURE_NOT_SUPPORTED), errmsg("gcl cannot serve this server"), errdetail("%s", what),
          errhint("Install the gcl built for this PostgreSQL version, or remove gcl from shared_preload_libraries."));
  pg_unreachable();
}

void check_server_version() {
  const char* running = GetConfigOption("server_version_num", true, false);
  if (running == nullptr || atoi(running) / 10000 != PG_VERSION_NUM / 10000) {
    refuse_server(psprintf("The server's version number is %s, gcl was built for %d.", running ? running : "unknown",
                           PG_VERSION_NUM));
  }
}

void check_builtin(const Builtin& builtin) { (void)checked_entry(builtin); }

void replace_builtin(const Builtin& builtin, PGFunction replacement) {
  if (!process_shared_preload_libraries_in_progress || IsUnderPostmaster) {
    refuse_server("gcl must be loaded through shared_preload_libraries.");
  }
  PGFunction* slot = checked_entry(builtin);
  if (!is_read_only(slot)) refuse_server("The table of built-in functions is not in read-only memory.");
  store(slot, replacement);
  note_replaced(builtin.oid);

  if (!is_read_only(slot)) refuse_server("The table of built-in functions did not become read-only again.");
  FmgrInfo info;
  fmgr_info(builtin.oid, &info);
  if (info.fn_addr != replacement) refuse(builtin, "was replaced, and the server does not call the replacement");
}

}  // namespace gcl

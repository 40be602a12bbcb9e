#include "extension/pg/indexam/handler_patch.hpp"

#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

extern "C" {
#include "access/nbtree.h"
#include "miscadmin.h"
#include "storage/fd.h"
#include "utils/fmgroids.h"
#include "utils/fmgrprotos.h"
#include "utils/fmgrtab.h"
#include "utils/guc.h"
}

namespace gcl {
namespace {

// Every refusal looks the same to the administrator: what was expected, and the two ways out.
[[noreturn]] void refuse(const char* what) {
  ereport(FATAL, errcode(ERRCODE_FEATURE_NOT_SUPPORTED), errmsg("gcl cannot serve btree indexes on this server"),
          errdetail("%s", what),
          errhint("Install the gcl built for this PostgreSQL version, or remove gcl from shared_preload_libraries."));
  pg_unreachable();
}

void check_version() {
  const char* running = GetConfigOption("server_version_num", true, false);
  if (running == nullptr || atoi(running) / 10000 != PG_VERSION_NUM / 10000) {
    refuse(psprintf("The server's version number is %s, gcl was built for %d.", running ? running : "unknown",
                    PG_VERSION_NUM));
  }
}

PGFunction* checked_entry() {
  const uint16 at =
      F_BTHANDLER <= fmgr_last_builtin_oid ? fmgr_builtin_oid_index[F_BTHANDLER] : InvalidOidBuiltinMapping;
  if (at == InvalidOidBuiltinMapping || at >= fmgr_nbuiltins)
    refuse("The table of built-in functions has no bthandler.");
  const FmgrBuiltin& entry = fmgr_builtins[at];
  if (entry.foid != 330 || entry.foid != F_BTHANDLER) refuse("The entry of bthandler has another object id.");
  if (entry.funcName == nullptr || strcmp(entry.funcName, "bthandler") != 0) {
    refuse("The entry of bthandler has another name.");
  }
  if (entry.func != bthandler) refuse("The entry of bthandler was changed by another module.");
  if (entry.nargs != 1 || !entry.strict || entry.retset) refuse("The entry of bthandler has another signature.");
  if (reinterpret_cast<uintptr_t>(&entry.func) % alignof(PGFunction) != 0) refuse("The entry is not aligned.");
  return const_cast<PGFunction*>(&entry.func);
}

// Whether the kernel maps `at` readable and not writable.
bool is_read_only(const void* at) {
  FILE* maps = AllocateFile("/proc/self/maps", "r");
  if (maps == nullptr) refuse("/proc/self/maps cannot be read.");
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
    refuse(psprintf("The table of built-in functions cannot be made writable: %m."));
  }
  __atomic_store_n(slot, function, __ATOMIC_RELEASE);
  if (mprotect(page, page_bytes, PROT_READ) != 0) {
    refuse(psprintf("The table of built-in functions cannot be made read-only again: %m."));
  }
}

}  // namespace

IndexAmRoutine checked_native_routine() {
  check_version();
  checked_entry();
  auto* routine = reinterpret_cast<IndexAmRoutine*>(DatumGetPointer(OidFunctionCall0(F_BTHANDLER)));
  if (routine == nullptr || !IsA(routine, IndexAmRoutine)) refuse("bthandler does not return an IndexAmRoutine.");
  const IndexAmRoutine& r = *routine;
  const bool flags = r.amstrategies == BTMaxStrategyNumber && r.amsupport == BTNProcs &&
                     r.amoptsprocnum == BTOPTIONS_PROC && r.amcanorder && !r.amcanorderbyop && r.amcanbackward &&
                     r.amcanunique && r.amcanmulticol && r.amoptionalkey && r.amsearcharray && r.amsearchnulls &&
                     !r.amstorage && r.amclusterable && r.ampredlocks && r.amcanparallel && r.amcaninclude &&
                     !r.amusemaintenanceworkmem && r.amkeytype == InvalidOid;
  if (!flags) refuse("The btree access method has other properties.");
  const bool functions = r.ambuild == btbuild && r.ambuildempty == btbuildempty && r.aminsert == btinsert &&
                         r.ambulkdelete == btbulkdelete && r.amvacuumcleanup == btvacuumcleanup &&
                         r.amcanreturn == btcanreturn && r.ambeginscan == btbeginscan && r.amrescan == btrescan &&
                         r.amgettuple == btgettuple && r.amgetbitmap == btgetbitmap && r.amendscan == btendscan &&
                         r.ammarkpos == btmarkpos && r.amrestrpos == btrestrpos && r.amoptions == btoptions &&
                         r.amvalidate == btvalidate && r.aminitparallelscan == btinitparallelscan;
  if (!functions) refuse("The btree access method has other functions; another module may have changed it.");
  return r;
}

void replace_btree_handler(PGFunction replacement) {
  if (!process_shared_preload_libraries_in_progress || IsUnderPostmaster) {
    refuse("gcl must be loaded through shared_preload_libraries.");
  }
  PGFunction* slot = checked_entry();
  if (!is_read_only(slot)) refuse("The table of built-in functions is not in read-only memory.");
  store(slot, replacement);

  if (!is_read_only(slot)) refuse("The table of built-in functions did not become read-only again.");
  FmgrInfo info;
  fmgr_info(F_BTHANDLER, &info);
  if (info.fn_addr != replacement) refuse("The server does not call the replaced bthandler.");
}

}  // namespace gcl

#include "extension/pg/indexam/handler_patch.hpp"

#include "extension/pg/boundary/builtin_patch.hpp"

extern "C" {
#include "access/nbtree.h"
#include "utils/fmgroids.h"
#include "utils/fmgrprotos.h"
}

namespace gcl {
namespace {

static_assert(F_BTHANDLER == 330);
const Builtin handler{.oid = F_BTHANDLER, .name = "bthandler", .native = bthandler, .nargs = 1};

}  // namespace

IndexAmRoutine checked_native_routine() {
  check_server_version();
  check_builtin(handler);
  auto* routine = reinterpret_cast<IndexAmRoutine*>(DatumGetPointer(OidFunctionCall0(F_BTHANDLER)));
  if (routine == nullptr || !IsA(routine, IndexAmRoutine))
    refuse_server("bthandler does not return an IndexAmRoutine.");
  const IndexAmRoutine& r = *routine;
  const bool flags = r.amstrategies == BTMaxStrategyNumber && r.amsupport == BTNProcs &&
                     r.amoptsprocnum == BTOPTIONS_PROC && r.amcanorder && !r.amcanorderbyop && r.amcanbackward &&
                     r.amcanunique && r.amcanmulticol && r.amoptionalkey && r.amsearcharray && r.amsearchnulls &&
                     !r.amstorage && r.amclusterable && r.ampredlocks && r.amcanparallel && r.amcaninclude &&
                     !r.amusemaintenanceworkmem && r.amkeytype == InvalidOid;
  if (!flags) refuse_server("The btree access method has other properties.");
  const bool functions = r.ambuild == btbuild && r.ambuildempty == btbuildempty && r.aminsert == btinsert &&
                         r.ambulkdelete == btbulkdelete && r.amvacuumcleanup == btvacuumcleanup &&
                         r.amcanreturn == btcanreturn && r.ambeginscan == btbeginscan && r.amrescan == btrescan &&
                         r.amgettuple == btgettuple && r.amgetbitmap == btgetbitmap && r.amendscan == btendscan &&
                         r.ammarkpos == btmarkpos && r.amrestrpos == btrestrpos && r.amoptions == btoptions &&
                         r.amvalidate == btvalidate && r.aminitparallelscan == btinitparallelscan;
  if (!functions) refuse_server("The btree access method has other functions; another module may have changed it.");
  return r;
}

void replace_btree_handler(PGFunction replacement) { replace_builtin(handler, replacement); }

}  // namespace gcl

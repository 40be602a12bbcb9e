// SQL functions for the stop points of this server.  The extension's script does not have them: a test that uses them
// creates them for itself (tests/cluster/stop_points.py).
#include "extension/pg/runtime/rows.hpp"
#include "extension/pg/runtime/stop_points.hpp"

extern "C" {
PG_FUNCTION_INFO_V1(gcl_stop_attach);
PG_FUNCTION_INFO_V1(gcl_stop_wakeup);
PG_FUNCTION_INFO_V1(gcl_stop_detach);
PG_FUNCTION_INFO_V1(gcl_stop_list);
}

using namespace gcl;  // NOLINT: the functions below are PostgreSQL's, in the global namespace

namespace {

// stop.off-unless-asked
engine::StopTable& table_for_superuser() {
  if (!superuser())
    ereport(ERROR, errcode(ERRCODE_INSUFFICIENT_PRIVILEGE), errmsg("must be superuser to use stop points"));
  if (stop_table() == nullptr)
    ereport(ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
            errmsg("stop points are switched off on this server"),
            errdetail("They let processes of the server stand still, for tests of gcl."),
            errhint("Set gcl.stop_points = on in a server that serves nothing else, and start it again."));
  return *stop_table();
}

StopPoint point_of(Datum argument) {
  const char* name = text_to_cstring(DatumGetTextPP(argument));
  const StopPoint point = engine::stop_point_named(name);
  if (point == StopPoint::kCount)
    ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("there is no stop point \"%s\"", name),
            errhint("The points are listed in extension/engine/stop/stop_point.hpp."));
  return point;
}

uint32_t number_of(Datum argument, int least, const char* what) {
  const int32 number = DatumGetInt32(argument);
  if (number < least)
    ereport(ERROR, errcode(ERRCODE_INVALID_PARAMETER_VALUE),
            errmsg("%s must be at least %d, not %d", what, least, number));
  return uint32_t(number);
}

}  // namespace

// (point, pid or 0 for any process, which of its arrivals)
Datum gcl_stop_attach(PG_FUNCTION_ARGS) {
  engine::StopTable& table = table_for_superuser();
  const engine::StopAttachment attachment{.point = point_of(PG_GETARG_DATUM(0)),
                                          .process = number_of(PG_GETARG_DATUM(1), 0, "pid"),
                                          .arrival = number_of(PG_GETARG_DATUM(2), 1, "arrival")};
  if (!table.attach(attachment))
    ereport(ERROR, errcode(ERRCODE_CONFIGURATION_LIMIT_EXCEEDED), errmsg("too many stop points are attached"),
            errdetail("There is room for %d on a server.", engine::StopTable::kEntries),
            errhint("Detach those that are no longer used."));
  PG_RETURN_VOID();
}

Datum gcl_stop_wakeup(PG_FUNCTION_ARGS) {
  engine::StopTable& table = table_for_superuser();
  const StopPoint point = point_of(PG_GETARG_DATUM(0));
  if (!table.wakeup(point, number_of(PG_GETARG_DATUM(1), 0, "pid")))
    ereport(ERROR, errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
            errmsg("no process stands at stop point \"%s\"", engine::stop_point_name(point)),
            errdetail("It has not come there, or has gone on: woken, interrupted, or after %u s.",
                      engine::kStopMsMax / 1000),
            errhint("Wait until the point is shown as its wait event; gcl_stop_list() tells what became of it."));
  PG_RETURN_VOID();
}

// How many attachments there were.
Datum gcl_stop_detach(PG_FUNCTION_ARGS) {
  engine::StopTable& table = table_for_superuser();
  PG_RETURN_INT32(table.detach(point_of(PG_GETARG_DATUM(0)), number_of(PG_GETARG_DATUM(1), 0, "pid")));
}

// (point, wanted pid, wanted arrival, arrivals so far, pid that stands or stood there, state)
Datum gcl_stop_list(PG_FUNCTION_ARGS) {
  engine::StopSight sights[engine::StopTable::kEntries];
  const int count = table_for_superuser().list(sights);
  ReturnSetInfo* const result = rows_of(fcinfo);
  for (int i = 0; i < count; ++i) {
    const engine::StopSight& at = sights[i];
    Row<6> row;
    row.text(engine::stop_point_name(at.attachment.point))
        .integer(at.attachment.process)
        .integer(at.attachment.arrival);
    row.integer(at.arrivals).integer(at.stopped).text(engine::stop_state_name(at.state)).put(result);
  }
  return Datum{0};
}

"""Stop points (extension/engine/stop): an interleaving of several primaries as a schedule.

    with Cluster(primaries=3, settings=(STOP_POINTS,)) as cluster:
        stops, writer = Stops(cluster), cluster.session(2)
        split = stops.attach(2, "blink_split_unlinked", writer.pid())
        writer.send("INSERT INTO t SELECT generate_series(1, 1000)")
        split.reached()                             # the process stands there; a failure if it never comes
        self.assertEqual(..., cluster.sql(3, ...))  # what others do meanwhile
        split.go_on()                               # a failure if it does not stand there any more
        writer.result()
"""
from harness import eventually

STOP_POINTS = "gcl.stop_points=on"
FUNCTIONS = """
CREATE FUNCTION pg_temp.gcl_stop_attach(point text, pid int, arrival int) RETURNS void AS '$libdir/gcl' LANGUAGE C STRICT;
CREATE FUNCTION pg_temp.gcl_stop_wakeup(point text, pid int) RETURNS void AS '$libdir/gcl' LANGUAGE C STRICT;
CREATE FUNCTION pg_temp.gcl_stop_detach(point text, pid int) RETURNS int AS '$libdir/gcl' LANGUAGE C STRICT;
CREATE FUNCTION pg_temp.gcl_stop_list() RETURNS TABLE (point text, pid int, arrival int, arrivals int, stopped int, state text)
  AS '$libdir/gcl' LANGUAGE C STRICT;
"""


class Stop:
    """One attachment: one arrival of one process, or of any, stops there."""

    def __init__(self, control, point, pid, arrival):
        self.control, self.point, self.pid = control, point, pid
        control.run(f"SELECT pg_temp.gcl_stop_attach('{point}', {pid}, {arrival})")

    def sight(self, column):
        return self.control.run(f"SELECT {column} FROM pg_temp.gcl_stop_list() WHERE point = '{self.point}' AND pid = {self.pid}")

    def reached(self):
        """Waits until the process stands there; returns its pid."""
        eventually(lambda: self.sight("state") == ["stands"])
        return int(self.sight("stopped")[0])

    def go_on(self):
        self.control.run(f"SELECT pg_temp.gcl_stop_wakeup('{self.point}', {self.pid})")

    def left(self):
        """Waits until the process has gone on by itself: it was interrupted.  Ends the attachment."""
        eventually(lambda: self.sight("state") == ["left"])
        self.detach()

    def detach(self):
        self.control.run(f"SELECT pg_temp.gcl_stop_detach('{self.point}', {self.pid})")


class Stops:
    """Of one cluster: a session on each primary that is asked for, which is used for nothing else."""

    def __init__(self, cluster):
        self.cluster, self.controls = cluster, {}

    def control(self, k):
        if k not in self.controls:
            self.controls[k] = self.cluster.session(k)
            self.controls[k].run(FUNCTIONS)
        return self.controls[k]

    def attach(self, k, point, pid=0, arrival=1):
        """Of primary K; pid 0: any process, the first that comes."""
        return Stop(self.control(k), point, pid, arrival)

    def detach_all(self):
        """For tests that failed on their way: each process that stands somewhere goes on."""
        for control in self.controls.values():
            control.run("SELECT pg_temp.gcl_stop_detach(point, 0) FROM (SELECT DISTINCT point FROM pg_temp.gcl_stop_list()) p")

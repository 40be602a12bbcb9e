"""A primary that memory node 0 could not hear ends as in a crash, joins again, and serves with all its workers.  Over tcp only: where
memory is mapped, there is nothing to be cut off from."""
import re
import signal
import time
import unittest

import processes
from harness import Cluster, SqlError, eventually, give
from stop_points import STOP_POINTS, Stops

LEASE = 1.8  # seconds, of a patience of 2: coherence/transport/tcp/member/patience.hpp


class CutOff(unittest.TestCase):
    def setUp(self):
        self.cluster = self.enterContext(Cluster(primaries=2, settings=(STOP_POINTS,)))
        self.cluster.sql(1, "CREATE TABLE t (v int) USING gcl; INSERT INTO t VALUES (1)")
        self.before = self.cluster.workers(2)

    def assert_comes_back(self):
        eventually(lambda: "joins it again" in self.cluster.log(2))
        eventually(lambda: self.cluster.ctl("status", self.cluster.dir, check=False).returncode == 0)
        eventually(lambda: set(self.before) - {"gcl ddl apply"} <= set(self.cluster.workers(2)))
        self.assertEqual(["1"], self.cluster.sql(2, "SELECT v FROM t WHERE v = 1"))
        self.cluster.sql(1, "ALTER TABLE t ADD w int")
        self.assertEqual(["1|"], self.cluster.sql(2, "SELECT * FROM t WHERE v = 1"))

    def network_worker(self):
        """No view shows it: it is not PostgreSQL's."""
        return processes.of_kinds(self.cluster, 2)["gcl network worker"][0]

    def stands_still_for_too_long(self, *but, then=lambda: None):
        """The network worker does, until memory node 0 has given its primary up; and until `then` has been called.  `but`:
        processes that still stand still afterwards."""
        worker = self.network_worker()
        give(signal.SIGSTOP, worker, *but)
        eventually(lambda: re.search(r": node 2 \(incarnation \d+\) is dead:", self.memory_log()))
        then()
        give(signal.SIGCONT, worker)

    def sessions_hear(self):
        """Whether they do that their primary is cut off."""
        try:
            self.cluster.sql(2, "SELECT v FROM t")
        except SqlError as error:
            return "was cut off from the gcl pool" in str(error)
        return False

    def memory_log(self):
        with open(f"{self.cluster.dir}/memory0/log", encoding="utf-8", errors="replace") as log:
            return log.read()

    def test_the_network_worker_stood_still(self):
        self.stands_still_for_too_long()
        self.assert_comes_back()

    def test_all_see_that_the_primary_is_cut_off_before_it_ends(self):
        """The message worker ends it, and stands still longer."""
        ends = self.before["gcl message worker"]
        self.stands_still_for_too_long(ends)
        eventually(self.sessions_hear)
        others = "SELECT backend_type FROM pg_stat_activity WHERE backend_type LIKE 'gcl %' AND wait_event IS NULL"
        eventually(lambda: self.cluster.sql(2, others) == ["gcl message worker"])  # the rest idles until the server ends
        time.sleep(2.5)  # a worker that does not wait to be told looks each second
        give(signal.SIGCONT, ends)
        self.assert_comes_back()

    def test_no_client_is_told_of_a_commit_that_the_pool_has_not_heard_of(self):
        """The local commit is done; whether the others have rolled it back by now, a primary that is cut off cannot know."""
        session = self.cluster.session(2)
        pid = session.pid()
        Stops(self.cluster).attach(2, "xact_locally_committed", pid)
        session.send("INSERT INTO t VALUES (7)")
        stands = f"SELECT 1 FROM pg_stat_activity WHERE pid = {pid} AND wait_event = 'GclStop_xact_locally_committed'"
        eventually(lambda: self.cluster.sql(2, stands) == ["1"])
        ends = self.before["gcl message worker"]

        def goes_on():
            give(signal.SIGINT, pid)  # nothing is canceled any more
            eventually(lambda: self.cluster.sql(2, stands) == [])
        self.stands_still_for_too_long(ends, then=goes_on)
        eventually(lambda: "the pool could not be told of a commit" in self.cluster.log(2))
        with self.assertRaises(SqlError) as told:
            session.result()
        self.assertEqual("08006", told.exception.state, told.exception)
        give(signal.SIGCONT, ends)
        self.assert_comes_back()
        one, two = self.cluster.everywhere("SELECT v FROM t ORDER BY v")
        self.assertEqual(one, two)


class Patience(unittest.TestCase):
    """gclctl init --patience: memory node 0 bears longer silence, and so does the primary itself."""

    def test_a_primary_that_stands_still_for_less_goes_on(self):
        with Cluster(primaries=2, patience=20) as cluster:
            cluster.sql(1, "CREATE TABLE t (v int) USING gcl; INSERT INTO t VALUES (1)")
            before = cluster.workers(2)
            stopped = processes.of_kinds(cluster, 2)["gcl network worker"]
            give(signal.SIGSTOP, *stopped)
            time.sleep(3 * LEASE)
            give(signal.SIGCONT, *stopped)
            cluster.sql(2, "UPDATE t SET v = 2")
            self.assertEqual(["2"], cluster.sql(1, "SELECT v FROM t"))
            self.assertEqual(before, cluster.workers(2))
            self.assertNotIn("is cut off", cluster.log(2))

    def test_nobody_waits_for_one_that_stands_still_but_for_its_pages(self):
        """A session that ends leaves what it has sent to its network worker."""
        with Cluster(primaries=2, patience=90) as cluster:  # far beyond what the session is waited for
            cluster.sql(1, "CREATE TABLE t (v int) USING gcl; INSERT INTO t VALUES (1); CREATE TABLE own (v int) USING gcl")
            cluster.sql(2, "UPDATE t SET v = 2")
            stopped = processes.of_kinds(cluster, 2)["gcl network worker"]
            give(signal.SIGSTOP, *stopped)
            waits, goes = cluster.session(1), cluster.session(1)
            waits.send("UPDATE t SET v = 3")
            waits.waits_for("GclPeer")
            goes.run("INSERT INTO own VALUES (1)")
            pid = goes.pid()
            goes.close()
            eventually(lambda: cluster.sql(1, f"SELECT 1 FROM pg_stat_activity WHERE pid = {pid}") == [])
            give(signal.SIGCONT, *stopped)
            waits.result()
            self.assertEqual(["3"], cluster.sql(2, "SELECT v FROM t"))


if __name__ == "__main__":
    unittest.main(verbosity=2)

"""A primary that memory node 0 could not hear ends as in a crash, joins again, and serves with all its workers.  Over tcp only: where
memory is mapped, there is nothing to be cut off from."""
import signal
import time
import unittest

import processes
from harness import Cluster, eventually, give

LEASE = 1.8  # seconds: coherence/transport/tcp/member/mirror.hpp


class CutOff(unittest.TestCase):
    def setUp(self):
        self.cluster = self.enterContext(Cluster(primaries=2))
        self.cluster.sql(1, "CREATE TABLE t (v int) USING gcl; INSERT INTO t VALUES (1)")
        self.before = self.cluster.workers(2)

    def assert_comes_back(self):
        eventually(lambda: "joins it again" in self.cluster.log(2))
        eventually(lambda: self.cluster.ctl("status", self.cluster.dir, check=False).returncode == 0)
        eventually(lambda: set(self.before) - {"gcl ddl apply"} <= set(self.cluster.workers(2)))
        self.assertEqual(["1"], self.cluster.sql(2, "SELECT v FROM t"))
        self.cluster.sql(1, "ALTER TABLE t ADD w int")
        self.assertEqual(["1|"], self.cluster.sql(2, "SELECT * FROM t"))

    def network_worker(self):
        """No view shows it: it is not PostgreSQL's."""
        return processes.of_kinds(self.cluster, 2)["gcl network worker"][0]

    def test_the_network_worker_stood_still(self):
        worker = self.network_worker()
        give(signal.SIGSTOP, worker)
        time.sleep(LEASE + 0.5)
        give(signal.SIGCONT, worker)
        self.assert_comes_back()

    def test_all_see_that_the_primary_is_cut_off_before_it_ends(self):
        """The message worker ends it, and stands still longer."""
        worker, ends = self.network_worker(), self.before["gcl message worker"]
        give(signal.SIGSTOP, worker, ends)
        time.sleep(LEASE + 0.5)
        give(signal.SIGCONT, worker)
        time.sleep(2.5)  # who does not wait to be told looks each second
        give(signal.SIGCONT, ends)
        self.assert_comes_back()


if __name__ == "__main__":
    unittest.main(verbosity=2)

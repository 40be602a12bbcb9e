"""Where deaths are not repaired, any unclean death fences the pool: within 5 s every waiter anywhere hears 57P02 and nothing hangs."""
import os
import re
import signal
import time
import unittest

from harness import Cluster, SqlError, eventually

FENCED = "57P02"
SECONDS_MAX = 5.0  # of the quickest: the machine may crawl for a moment


class Death(unittest.TestCase):
    took = []  # seconds until all knew, of each death

    @classmethod
    def tearDownClass(cls):
        print("heard after:", *(f"{seconds:.2f} s" for seconds in cls.took))
        assert min(cls.took, default=0) < SECONDS_MAX, cls.took

    def setUp(self):
        self.cluster = self.enterContext(Cluster(primaries=3, fences=True))
        self.cluster.sql(1, "CREATE TABLE t (id int PRIMARY KEY, v int) USING gcl")
        self.cluster.sql(1, "INSERT INTO t SELECT i, 0 FROM generate_series(1, 1000) i")
        self.cluster.everywhere("SELECT count(*) FROM t")
        self.holder = self.cluster.session(1)
        self.holder.run("BEGIN; UPDATE t SET v = 1 WHERE id = 1")
        self.waiters = [self.cluster.session(2), self.cluster.session(3)]
        for waiter in self.waiters:
            waiter.send("UPDATE t SET v = 2 WHERE id = 1")
        for waiter in self.waiters:
            self.assertTrue(waiter.blocked())

    def assert_fenced(self, began, nodes):
        for waiter in self.waiters:
            with self.assertRaises(SqlError) as caught:
                waiter.result()
            self.assertEqual(FENCED, caught.exception.state, caught.exception)
        self.took.append(time.monotonic() - began)
        for k in nodes:
            for text in ("SELECT count(*) FROM t", "\\c template1\nCREATE ROLE nobody", "CREATE DATABASE nothing"):
                with self.assertRaises(SqlError) as caught:
                    self.cluster.sql(k, text)
                self.assertEqual(FENCED, caught.exception.state, caught.exception)
            # It can be administered all the same.
            self.cluster.sql(k, "SET gcl.local_administration = on; CREATE ROLE nobody; CREATE DATABASE nothing")

    def assert_start_says_so(self, before=lambda: None):
        self.cluster.ctl("stop", self.cluster.dir, check=False)
        before()
        said = self.cluster.ctl("start", self.cluster.dir)
        self.assertRegex(said.stdout, "(?s)fenced.*the pool is whole again")  # gclctl.fenced-made-again
        self.assertEqual([["1000"]] * 3, self.cluster.everywhere("SELECT count(*) FROM t"))

    def test_a_whole_primary(self):
        began = time.monotonic()
        self.cluster.kill_all(1)
        self.assert_fenced(began, (2, 3))
        self.assert_start_says_so()

    def test_a_postmaster(self):
        """And a gclctl that is killed while it makes the pool again leaves the fenced one's file aside."""
        began = time.monotonic()
        os.kill(self.cluster.postmaster(1), signal.SIGKILL)
        self.assert_fenced(began, (2, 3))
        pool = self.cluster.pool_dir() + "/pool"
        self.assert_start_says_so(lambda: os.rename(pool, pool + ".fenced"))
        self.assertFalse(os.path.exists(pool + ".fenced"))
        nodes = [name for name in os.listdir(self.cluster.pool_dir()) if re.fullmatch(r"pool\.node\d\.\d+", name)]
        self.assertEqual(3, len(nodes), nodes)

    def test_a_backend(self):
        pid = self.holder.pid()
        began = time.monotonic()
        os.kill(pid, signal.SIGKILL)
        self.assert_fenced(began, (2, 3))
        eventually(lambda: self.answers_fenced(1))
        self.assert_start_says_so()

    def test_a_worker(self):
        workers = self.cluster.workers(2)
        self.assertTrue(workers)
        began = time.monotonic()
        os.kill(sorted(workers.items())[0][1], signal.SIGKILL)
        with self.assertRaises(SqlError) as caught:  # its own postmaster ends every backend of primary 2
            self.waiters.pop(0).result()
        self.assertIn(caught.exception.state, (FENCED, "08006"))
        self.assert_fenced(began, (1, 3))
        self.assert_start_says_so()

    def test_readers_of_what_is_in_their_cache(self):
        """Sessions that need no other node hear of it, too: between statements of one snapshot, and within a statement."""
        still, busy = self.cluster.session(2), self.cluster.session(3)
        still.run("BEGIN ISOLATION LEVEL REPEATABLE READ")
        for _ in range(2):
            still.run("SELECT count(*) FROM t")
        busy.send("DO $$BEGIN LOOP PERFORM count(*) FROM t; END LOOP; END$$")
        eventually(lambda: self.cluster.sql(3, "SELECT 1 FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'DO%'") == ["1"])
        began = time.monotonic()
        self.cluster.kill_all(1)
        self.waiters.append(busy)
        self.assert_fenced(began, (2, 3))
        with self.assertRaises(SqlError) as caught:
            still.run("SELECT count(*) FROM t")
        self.assertEqual(FENCED, caught.exception.state)

    def answers_fenced(self, k):
        try:
            self.cluster.sql(k, "SELECT count(*) FROM t")
        except SqlError as e:
            return e.state == FENCED
        return False


if __name__ == "__main__":
    unittest.main(verbosity=2)

"""A row locked on one primary is locked on all, and waiting for it looks like waiting in PostgreSQL."""
import unittest

from harness import Cluster, SqlError, eventually


class Locks(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster(primaries=3))
        cls.cluster.sql(1, "CREATE TABLE t (id int PRIMARY KEY, v int) USING gcl")
        cls.cluster.sql(1, "INSERT INTO t SELECT i, 0 FROM generate_series(1, 10) i")

    def setUp(self):
        self.holder, self.waiter = self.cluster.session(1), self.cluster.session(2)
        self.waiter_pid = self.waiter.pid()

    def hold(self, row, how="UPDATE t SET v = v + 1 WHERE id = {}"):
        self.holder.run("BEGIN")
        self.holder.run(how.format(row))

    def test_commit_releases(self):
        self.hold(1)
        self.waiter.send("UPDATE t SET v = v + 1 WHERE id = 1 RETURNING v")
        self.assertTrue(self.waiter.waits())
        self.holder.run("COMMIT")
        self.assertEqual(["2"], self.waiter.result(5))

    def test_rollback_releases(self):
        self.hold(2)
        self.waiter.send("UPDATE t SET v = v + 1 WHERE id = 2 RETURNING v")
        self.assertTrue(self.waiter.waits())
        self.holder.run("ROLLBACK")
        self.assertEqual(["1"], self.waiter.result(5))

    def test_select_for_update_locks_and_waits(self):
        self.hold(3, "SELECT * FROM t WHERE id = {} FOR UPDATE")
        self.waiter.send("SELECT v FROM t WHERE id = 3 FOR UPDATE")
        self.assertTrue(self.waiter.waits())
        self.assertEqual("0", self.cluster.session(2).one("SELECT v FROM t WHERE id = 3"))  # readers never wait
        self.holder.run("COMMIT")
        self.assertEqual(["0"], self.waiter.result(5))

    def test_delete_waits_and_finds_nothing_after_a_delete(self):
        self.hold(4, "DELETE FROM t WHERE id = {}")
        self.waiter.send("DELETE FROM t WHERE id = 4 RETURNING id")
        self.assertTrue(self.waiter.waits())
        self.holder.run("COMMIT")
        self.assertEqual([], self.waiter.result(5))

    def test_waiting_is_seen(self):
        self.hold(5)
        self.waiter.send("UPDATE t SET v = 9 WHERE id = 5")
        look = self.cluster.session(2)
        eventually(lambda: look.one(f"SELECT count(*) FROM pg_locks WHERE pid = {self.waiter_pid} AND NOT granted") == "1")
        self.assertNotEqual("{}", look.one(f"SELECT pg_blocking_pids({self.waiter_pid})"))
        self.assertEqual("Lock", look.one(f"SELECT wait_event_type FROM pg_stat_activity WHERE pid = {self.waiter_pid}"))
        self.holder.run("COMMIT")
        self.waiter.result(5)
        self.assertEqual("{}", look.one(f"SELECT pg_blocking_pids({self.waiter_pid})"))

    def test_lock_timeout(self):
        self.hold(6)
        self.waiter.run("SET lock_timeout = '300ms'")
        with self.assertRaises(SqlError) as caught:
            self.waiter.run("UPDATE t SET v = 9 WHERE id = 6", 5)
        self.assertEqual("55P03", caught.exception.state)
        self.holder.run("COMMIT")
        self.assertEqual("1", self.waiter.one("SELECT v FROM t WHERE id = 6"))

    def test_cancel(self):
        self.hold(7)
        self.waiter.send("UPDATE t SET v = 9 WHERE id = 7")
        self.assertTrue(self.waiter.waits())
        self.assertEqual("t", self.cluster.session(2).one(f"SELECT pg_cancel_backend({self.waiter_pid})"))
        with self.assertRaises(SqlError) as caught:
            self.waiter.result(5)
        self.assertEqual("57014", caught.exception.state)
        self.holder.run("COMMIT")
        self.assertEqual("1", self.waiter.one("SELECT v FROM t WHERE id = 7"))

    def test_skip_locked_and_nowait(self):
        self.hold(8)
        self.assertEqual([], self.waiter.run("SELECT id FROM t WHERE id = 8 FOR UPDATE SKIP LOCKED", 5))
        with self.assertRaises(SqlError) as caught:
            self.waiter.run("SELECT id FROM t WHERE id = 8 FOR UPDATE NOWAIT", 5)
        self.assertEqual("55P03", caught.exception.state)
        self.holder.run("ROLLBACK")

    def test_a_closed_connection_releases(self):
        self.hold(9)
        self.waiter.send("UPDATE t SET v = 5 WHERE id = 9 RETURNING v")
        self.assertTrue(self.waiter.waits())
        self.holder.close()
        self.assertEqual(["5"], self.waiter.result(5))

    def test_all_three_queue_for_one_row(self):
        self.hold(10)
        third = self.cluster.session(3)
        self.waiter.send("UPDATE t SET v = v + 1 WHERE id = 10")
        third.send("UPDATE t SET v = v + 1 WHERE id = 10")
        self.assertTrue(self.waiter.waits() and third.waits())
        self.holder.run("COMMIT")
        self.waiter.result(5)
        third.result(5)
        for answer in self.cluster.everywhere("SELECT v FROM t WHERE id = 10"):
            self.assertEqual(["3"], answer)


if __name__ == "__main__":
    unittest.main(verbosity=2)

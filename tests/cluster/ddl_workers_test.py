"""The workers that do the other primaries' DDL are ended at bad moments: nobody takes part in part only."""
import unittest

from harness import Cluster, SqlError, eventually

END = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE backend_type = 'gcl ddl {}'"


class DdlWorkers(unittest.TestCase):
    def setUp(self):
        self.cluster = self.enterContext(Cluster(primaries=2))
        self.cluster.sql(1, "CREATE TABLE t (id int, v int) USING gcl")

    def end(self, k, which):
        self.assertEqual(["1"], self.cluster.sql(k, END.format(which)))

    def launcher(self, k):
        return self.cluster.workers(k).get("gcl ddl launcher")

    def test_a_launcher_stays_as_long_as_sessions_use_tables(self):
        session = self.cluster.session(2)
        session.run("INSERT INTO t VALUES (1, 1)")
        before = self.launcher(2)
        self.end(2, "launcher")
        self.cluster.sql(1, "CREATE UNIQUE INDEX t_v ON t (v)")
        with self.assertRaises(SqlError) as caught:
            session.run("INSERT INTO t VALUES (2, 1)")
        self.assertEqual("23505", caught.exception.state)
        self.assertEqual(before, self.launcher(2))
        # Nobody needs it any more: it goes, and another one comes.
        session.close()
        self.assertTrue(eventually(lambda: self.launcher(2) not in (None, before)))
        self.assertEqual(["1"], self.cluster.sql(2, "INSERT INTO t VALUES (3, 3) RETURNING 1"))

    def test_a_launcher_has_nothing_to_cancel(self):
        before = self.launcher(2)
        self.cluster.sql(2, "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE backend_type = 'gcl ddl launcher'")
        self.cluster.sql(1, "CREATE INDEX ON t (id)")
        self.assertEqual(before, self.launcher(2))

    def test_a_lock_that_was_lost_fails_its_transaction(self):
        locker = self.cluster.session(1)
        locker.run("BEGIN; LOCK TABLE t IN EXCLUSIVE MODE")
        self.end(2, "apply")
        self.assertTrue(eventually(lambda: "gcl ddl apply" not in self.cluster.workers(2)))
        self.cluster.sql(2, "INSERT INTO t VALUES (1, 1)")
        with self.assertRaises(SqlError) as caught:
            locker.run("COMMIT")
        self.assertEqual("25P02", caught.exception.state)
        # As any other, if nothing was lost.
        locker.run("BEGIN; LOCK TABLE t IN EXCLUSIVE MODE; COMMIT")

    def test_what_is_prepared_is_committed_before_the_worker_ends(self):
        """The author waits for a standby that does not exist, between the others' answers and its own commit."""
        session = self.cluster.session(2)
        session.run("INSERT INTO t VALUES (1, 1)")
        author = self.cluster.session(1)
        self.cluster.sql(1, "ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
        self.cluster.sql(1, "SELECT pg_reload_conf()")
        try:
            author.send("CREATE UNIQUE INDEX t_v ON t (v)")
            self.assertTrue(eventually(lambda: self.cluster.sql(
                1, "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query LIKE 'CREATE UNIQUE%'") == ["1"]))
            self.end(2, "apply")
            session.send("INSERT INTO t VALUES (2, 1)")
            self.assertTrue(session.waits(1))
        finally:
            self.cluster.sql(1, "ALTER SYSTEM RESET synchronous_standby_names")
            self.cluster.sql(1, "SELECT pg_reload_conf()")
        author.result()
        with self.assertRaises(SqlError) as caught:
            session.result()
        self.assertEqual("23505", caught.exception.state)


if __name__ == "__main__":
    unittest.main(verbosity=2)

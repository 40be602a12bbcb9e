"""A session that has a DDL lock and does nothing holds up the others for gcl.ddl_yield, and no longer."""
import time
import unittest

from harness import GO_ON, STAND_STILL, Cluster, Session, SqlError, eventually


class Yields(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster(primaries=3, settings=("gcl.ddl_yield=1s",)))
        cls.cluster.sql(1, "CREATE ROLE mallory LOGIN")
        cls.cluster.sql(1, STAND_STILL)
        cls.superuser = cls.cluster.sql(1, "SELECT current_user")[0]

    def setUp(self):
        self.addCleanup(self.cluster.close_sessions)

    def holds(self, statement, role="mallory"):
        self.holder = Session(f"{self.cluster.dsn(1)} user={role}")
        self.addCleanup(self.holder.close)
        self.holder.run(f"BEGIN; {statement}")

    def is_ended(self):
        with self.assertRaises(SqlError) as caught:
            self.holder.run("SELECT 1")
        self.assertIn(caught.exception.state, ("57P01", "08006"))
        eventually(lambda: any("has let others wait for a DDL lock" in line for line in self.cluster.log(1).splitlines()))

    def test_an_idle_holder_of_the_whole_clusters_lock_is_ended(self):
        for k in (1, 2):
            with self.subTest(primary=k):
                self.holds("ALTER ROLE mallory SET work_mem = '5MB'")
                self.cluster.sql(k, f"CREATE TABLE waits_{k} (i int) USING gcl")
                self.is_ended()
        self.assertEqual([["t"]] * 3, self.cluster.everywhere("SELECT rolconfig IS NULL FROM pg_roles WHERE rolname = 'mallory'"))

    def test_an_idle_holder_of_a_databases_lock_is_ended(self):
        for k in (1, 3):
            with self.subTest(primary=k):
                self.holds(f"CREATE TABLE held_{k} (i int) USING gcl", self.superuser)
                self.cluster.sql(k, f"CREATE TABLE waits_too_{k} (i int) USING gcl")
                self.is_ended()
                self.assertEqual([["t"]] * 3, self.cluster.everywhere(f"SELECT to_regclass('held_{k}') IS NULL"))

    def test_a_role_without_privileges_keeps_the_whole_clusters_lock_no_longer_if_it_is_busy(self):
        self.holds("ALTER ROLE mallory SET work_mem = '5MB'")
        self.holder.send("SELECT pg_sleep(600)")
        self.holder.waits_for("PgSleep")
        self.cluster.sql(2, "CREATE TABLE waits_for_the_busy (i int) USING gcl")
        with self.assertRaises(SqlError):
            self.holder.result()

    def test_nor_if_it_is_never_idle_for_long(self):
        for turn in range(20):
            self.holds("ALTER ROLE mallory SET work_mem = '5MB'")
            waits = self.cluster.session(3)
            waits.send(f"CREATE TABLE waits_for_the_talkative_{turn} (i int) USING gcl")
            self.assertTrue(waits.blocked())
            idle_max = self.talks()
            waits.result()
            if idle_max < 1:
                return
            self.holder.close()
        self.fail("it was idle for long each time")

    def talks(self):
        """Until the holder is ended; returns for how long it was idle before that, at most."""
        idle_max, sent = 0, time.monotonic() - 0.3
        with self.assertRaises(SqlError):
            for _ in range(100):
                before, sent = sent, time.monotonic()
                try:
                    self.holder.run("SELECT pg_sleep(0.3)")
                finally:  # it slept for 0.3 s, whenever that was
                    idle_max = max(idle_max, time.monotonic() - before - 0.3)
        return idle_max

    def test_a_primary_that_starts_waits_no_longer(self):
        self.holds("ALTER ROLE mallory SET work_mem = '5MB'")
        self.cluster.stop(2)
        self.cluster.start(2)
        self.is_ended()
        self.cluster.sql(2, "CREATE TABLE after_start (i int) USING gcl")

    def test_a_busy_holder_and_one_that_no_session_waits_for_are_left_alone(self):
        self.holds("CREATE TABLE kept (i int) USING gcl", self.superuser)
        self.cluster.sql(2, "SELECT pg_sleep(3)")  # three times as long as an idle one may hold what others wait for
        gate, waits = self.cluster.session(1), self.cluster.session(2)
        self.holder.send("SELECT stand_still() \\; COMMIT")  # one message: it is idle no more
        self.holder.waits_for("PgSleep")
        waits.send("CREATE TABLE after_kept (i int) USING gcl")
        self.assertTrue(waits.blocked())
        self.assertTrue(waits.waits(3))
        gate.run(GO_ON)
        self.holder.result()
        waits.result()
        self.assertEqual([["t"]] * 3, self.cluster.everywhere("SELECT to_regclass('kept') IS NOT NULL AND to_regclass('after_kept') IS NOT NULL"))


if __name__ == "__main__":
    unittest.main()

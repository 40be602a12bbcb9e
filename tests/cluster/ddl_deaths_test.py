"""DDL whose coordinator or participant dies: those that live agree, and go on; so does a primary that comes back.

The cluster's pool repairs deaths.
"""
import threading
import time
import unittest

from harness import SERVES, Cluster, Session, SqlError, eventually
from stop_points import STOP_POINTS, Stops

FINGERPRINT = "SELECT gcl_ddl_fingerprint(), count(*) FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE a.amname = 'gcl'"


class DdlDeaths(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster(primaries=3, settings=(STOP_POINTS,)))
        cls.cluster.sql(1, "CREATE TABLE t (id int PRIMARY KEY, v int) USING gcl")

    def setUp(self):
        self.stops = Stops(self.cluster)
        self.name = self.id().rsplit(".", 1)[1].removeprefix("test_")[:40]

    def tearDown(self):
        self.cluster.close_sessions()

    def tables(self, k, name):
        return int(self.cluster.sql(k, f"SELECT count(*) FROM pg_class WHERE relname = '{name}'")[0])

    def assert_all_agree(self, name, count):
        """The three primaries have the table, or do not, and so do their catalogs as a whole; DDL goes on."""
        for k in (1, 2, 3):
            eventually(lambda k=k: self.cluster.sql(k, SERVES) == ["serving"])
        self.assertEqual([count] * 3, [self.tables(k, name) for k in (1, 2, 3)])
        for k in (1, 2, 3):
            self.cluster.sql(k, f"CREATE TABLE {name}_after_{k} (a int PRIMARY KEY) USING gcl; INSERT INTO {name}_after_{k} VALUES ({k})")
        first, *others = self.cluster.everywhere(FINGERPRINT)
        self.assertEqual([first] * 2, others)
        self.assertEqual([], self.cluster.sql(1, "SELECT * FROM gcl_ddl_lock"))
        self.assertEqual([], self.cluster.sql(1, "SELECT * FROM gcl_stat_ddl"))

    # --- the coordinator ----------------------------------------------------------------------------------------------

    def coordinator_dies_at(self, point, statements):
        """Primary 2 dies where its session stands."""
        session = self.cluster.session(2)
        pid = session.pid()
        self.stops.attach(2, point, pid)
        session.send(statements)
        stands = f"SELECT count(*) FROM pg_stat_activity WHERE pid = {pid} AND wait_event = 'GclStop_{point}'"
        eventually(lambda: self.cluster.sql(2, stands) == ["1"])  # functions would wait for one that is about to commit
        self.cluster.kill_all(2)

    def coordinator_dies(self, point, statements, count):
        self.coordinator_dies_at(point, statements)
        for k in (1, 3):
            eventually(lambda k=k: self.tables(k, self.name) == count)
        for k in (1, 3):
            self.cluster.sql(k, f"CREATE TABLE {self.name}_meanwhile_{k} (a int) USING gcl")
        self.cluster.start(2)
        self.assert_all_agree(self.name, count)

    def lone(self):
        return f"CREATE TABLE {self.name} (a int PRIMARY KEY) USING gcl"

    def several(self):
        return f"BEGIN; CREATE TABLE {self.name} (a int) USING gcl; CREATE INDEX ON {self.name} (a); COMMIT"

    def test_a_coordinator_before_it_is_answered(self):
        self.coordinator_dies("ddl_statement_sent", self.several(), 0)

    def test_a_coordinator_of_one_statement_before_it_is_answered(self):
        self.coordinator_dies("ddl_statement_sent", self.lone(), 0)

    def test_a_coordinator_when_all_are_prepared(self):
        self.coordinator_dies("ddl_all_prepared", self.several(), 0)

    def test_a_coordinator_that_has_committed_and_told_nobody(self):
        self.coordinator_dies("ddl_commit_untold", self.several(), 1)

    def test_a_coordinator_of_one_statement_that_has_committed(self):
        self.coordinator_dies("ddl_commit_untold", self.lone(), 1)

    def test_a_coordinator_in_doubt(self):
        """Only it knows that it has committed."""
        self.coordinator_dies_at("xact_locally_committed", self.several())
        eventually(lambda: self.cluster.sql(1, "SELECT DISTINCT author_node, phase FROM gcl_stat_ddl") == ["2|in doubt"])
        for k in (1, 3):
            self.assertEqual(0, self.tables(k, self.name))
            self.assertEqual(["2"], self.cluster.sql(k, "SELECT node FROM gcl_ddl_lock"))
            self.cluster.sql(k, f"INSERT INTO t SELECT max(id) + 1, {k} FROM (SELECT id FROM t UNION SELECT 0) x")
            with self.assertRaises(SqlError) as caught:
                self.cluster.sql(k, "SET lock_timeout = '300ms'; CREATE TABLE nothing_follows (a int) USING gcl")
            self.assertEqual("55P03", caught.exception.state)
        cancel = "SELECT pg_cancel_backend(pid), pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'gcl ddl apply'"
        self.cluster.sql(1, cancel)
        time.sleep(0.5)
        self.assertEqual(0, self.tables(1, self.name))
        self.assertEqual(["2|in doubt"], self.cluster.sql(1, "SELECT DISTINCT author_node, phase FROM gcl_stat_ddl"))
        self.cluster.start(2)
        self.assert_all_agree(self.name, 1)

    def test_a_coordinator_that_has_locked_a_table(self):
        holder, writer = self.cluster.session(2), self.cluster.session(3)
        holder.run("BEGIN; LOCK TABLE t IN ACCESS EXCLUSIVE MODE")
        writer.send("INSERT INTO t VALUES (1000, 0)")
        self.assertTrue(writer.blocked())
        self.cluster.kill_all(2)
        writer.result()
        self.cluster.start(2)
        self.assert_all_agree(self.name, 0)

    def test_sessions_that_wait_for_the_ddl_lock(self):
        holder, waiters = self.cluster.session(2), {k: self.cluster.session(k) for k in (1, 3)}
        holder.run(f"BEGIN; CREATE TABLE {self.name} (a int) USING gcl")
        for k, waiter in waiters.items():
            waiter.send(f"CREATE TABLE {self.name}_waits_{k} (a int) USING gcl")
            self.assertTrue(waiter.blocked())
        self.cluster.kill_all(2)
        for waiter in waiters.values():
            waiter.result()
        self.cluster.start(2)
        self.assert_all_agree(self.name, 0)

    def test_a_primary_that_waits_to_join(self):
        self.cluster.stop(3)
        holder = self.cluster.session(2)
        holder.run(f"BEGIN; CREATE TABLE {self.name} (a int) USING gcl")
        joining = threading.Thread(target=self.cluster.start, args=(3,))
        joining.start()
        eventually(lambda: self.cluster.sql(1, "SELECT count(*) FROM gcl_stat_ddl_log WHERE node = 3 AND state <> 'serving'") == ["1"])
        self.cluster.kill_all(2)
        joining.join()
        self.assertEqual(["0"], self.cluster.sql(3, "SELECT count(*) FROM t WHERE id < 0"))
        self.cluster.start(2)
        self.assert_all_agree(self.name, 0)

    # --- a participant ------------------------------------------------------------------------------------------------

    def participant_dies(self, on, point, statements):
        """Primary 3 dies while a process of primary `on` stands there; the coordinator is primary 1."""
        session = self.cluster.session(1)
        stop = self.stops.attach(on, point, session.pid() if on == 1 else 0)
        session.send(statements)
        stop.reached()
        self.cluster.kill_all(3)
        if on == 1:
            stop.go_on()
        session.result()
        self.assertEqual([1, 1], [self.tables(k, self.name) for k in (1, 2)])
        self.cluster.sql(2, f"CREATE TABLE {self.name}_meanwhile (a int) USING gcl")
        self.cluster.start(3)
        self.assert_all_agree(self.name, 1)

    def test_a_participant_that_has_not_answered(self):
        self.participant_dies(3, "ddl_replayed", self.several())

    def test_a_participant_of_one_statement_that_has_not_answered(self):
        self.participant_dies(3, "ddl_replayed", self.lone())

    def test_a_participant_that_is_asked(self):
        self.participant_dies(1, "ddl_statement_sent", self.several())

    def test_a_participant_that_is_prepared(self):
        self.participant_dies(1, "ddl_all_prepared", self.several())

    def test_a_participant_that_is_to_commit(self):
        self.participant_dies(1, "ddl_commit_untold", self.lone())

    def test_a_participant_that_makes_a_database(self):
        session = self.cluster.session(1)
        stop = self.stops.attach(3, "ddl_replayed")
        session.send("CREATE DATABASE made_in_between")
        stop.reached()
        self.cluster.kill_all(3)
        session.result()
        self.cluster.start(3)
        there = Session(f"{self.cluster.dsn(3)} dbname=made_in_between")
        self.assertEqual(["made_in_between"], there.run("SELECT current_database()"))
        there.close()
        self.cluster.sql(3, "DROP DATABASE made_in_between")
        self.assert_all_agree(self.name, 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)

"""SERIALIZABLE transactions that are idle stop nobody for longer than gcl.hold_yield."""
import os
import random
import signal
import subprocess
import time
import unittest

import serializable_test
from harness import PSQL, Cluster, SqlError, eventually
from serializable_test import BEGIN
from stop_points import STOP_POINTS, Stops

YIELD = 0.3  # seconds
LONG_YIELD = 6  # seconds, of which the test itself may be without a processor for most
FOREVER = "SET gcl.hold_yield = -1"


class Yield(unittest.TestCase):
    """Each is done with the holder and the waiter on one primary, and on two."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster(primaries=3, settings=(STOP_POINTS, f"gcl.hold_yield={int(YIELD * 1000)}ms")))
        cls.stops = Stops(cls.cluster)
        cls.cluster.sql(1, """
            CREATE TABLE t (id int PRIMARY KEY, v int NOT NULL) USING gcl;
            CREATE TABLE u (id int PRIMARY KEY, v int NOT NULL) USING gcl;
            CREATE TABLE w (id int) USING gcl;
            CREATE ROLE reader;
            GRANT SELECT ON t, u TO reader""")

    def setUp(self):
        self.cluster.close_sessions()
        self.stops.controls.clear()
        self.cluster.sql(1, """
            TRUNCATE t, u;
            INSERT INTO t SELECT i, 0 FROM generate_series(1, 10) i;
            INSERT INTO u SELECT i, 0 FROM generate_series(1, 10) i""")

    def places(self):
        for other in (1, 2):
            with self.subTest(other=other):
                self.setUp()
                yield self.cluster.session(1), self.cluster.session(other)

    def refused(self, session, sql):
        """40001, and it says why."""
        with self.assertRaises(SqlError) as raised:
            session.run(sql)
        self.assertEqual("40001", raised.exception.state, raised.exception)
        said = "\n".join(session.collected)
        self.assertRegex(said, r"DETAIL:  Its pages were given up to others, who waited, after it had been idle for \d+ ms\.")
        self.assertRegex(said, r"HINT:  .*retried.*gcl\.hold_yield")

    def test_a_reader_stops_no_writer(self):
        """A role that has no right but to read can do nothing about it; and it loses nothing, as long as it only reads."""
        for reader, writer in self.places():
            reader.run("SET SESSION AUTHORIZATION reader")
            with self.assertRaises(SqlError) as raised:
                reader.run("SET gcl.hold_yield = -1")
            self.assertEqual("42501", raised.exception.state)
            for level in ("READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"):
                with self.subTest(level=level):
                    before = reader.run(f"{BEGIN}; SELECT sum(v) FROM t")
                    reader.run("SELECT count(*) FROM u")
                    writer.run(f"BEGIN ISOLATION LEVEL {level}; UPDATE t SET v = v + 1; INSERT INTO t VALUES (11, 0); COMMIT")
                    self.assertEqual(before, reader.run("SELECT sum(v) FROM t"))
                    self.assertEqual("10", reader.one("SELECT count(*) FROM t"))
                    reader.run("COMMIT")
                    writer.run("DELETE FROM t WHERE id = 11")
            self.assertEqual("30", reader.one("SELECT sum(v) FROM t"))

    def test_a_holder_that_has_read_and_writes_then_is_to_retry(self):
        for holder, writer in self.places():
            holder.run(f"{BEGIN}; SELECT sum(v) FROM t")
            writer.run("UPDATE t SET v = 1 WHERE id = 1")
            self.refused(holder, "UPDATE u SET v = (SELECT sum(v) FROM t)")
            holder.run("ROLLBACK")
            self.assertEqual("1", holder.one("SELECT sum(v) FROM t"))

    def test_a_holder_that_has_written_is_to_retry(self):
        """Its rows stay locked until it is rolled back, its pages do not."""
        for holder, writer in self.places():
            holder.run(f"{BEGIN}; UPDATE t SET v = 7 WHERE id = 2")
            writer.run("UPDATE t SET v = 1 WHERE id = 1; INSERT INTO t VALUES (11, 1)")
            writer.send("UPDATE t SET v = 2 WHERE id = 2")
            self.assertTrue(writer.blocked())
            self.refused(holder, "SELECT 1")
            holder.run("ROLLBACK")
            writer.result()
            self.assertEqual("4", holder.one("SELECT sum(v) FROM t"))

    def test_a_commit_is_refused(self):
        for holder, writer in self.places():
            holder.run(f"{BEGIN}; SELECT * FROM t; UPDATE u SET v = 7")
            writer.run("UPDATE t SET v = 1 WHERE id = 1")
            self.refused(holder, "COMMIT")
            self.assertEqual("0", writer.one("SELECT sum(v) FROM u"))
            holder.run(f"{BEGIN}; SELECT * FROM t; CREATE TABLE made (id int) USING gcl")
            writer.run("UPDATE t SET v = 1 WHERE id = 1")
            self.refused(holder, "COMMIT")
            self.assertEqual("0", writer.one("SELECT count(*) FROM pg_class WHERE relname = 'made'"))

    def test_in_a_failed_savepoint(self):
        for holder, writer in self.places():
            holder.run(f"{BEGIN}; SELECT * FROM t; SAVEPOINT s")
            self.assertRaises(SqlError, holder.run, "SELECT 1 / 0")
            writer.run("UPDATE t SET v = 1 WHERE id = 1")
            holder.run("ROLLBACK TO s")
            self.assertEqual("0", holder.one("SELECT sum(v) FROM t"))
            self.refused(holder, "UPDATE u SET v = 1")
            holder.run("ROLLBACK")

    def test_with_cursors(self):
        self.cluster.sql(1, "INSERT INTO t SELECT i, 0 FROM generate_series(11, 5000) i")
        for holder, writer in ((self.cluster.session(1), self.cluster.session(k)) for k in (1, 2)):
            holder.run(f"{BEGIN}; PREPARE p AS SELECT sum(v) FROM t; EXECUTE p; DECLARE c CURSOR FOR SELECT v FROM t; FETCH 3 c")
            before = holder.one("EXECUTE p")
            writer.run("UPDATE t SET v = v + 1")
            rows = holder.run("FETCH ALL c")
            self.assertEqual(int(before), sum(map(int, rows)) + 3 * int(rows[0]))
            self.assertEqual(before, holder.one("EXECUTE p"))
            holder.run("COMMIT")

    def test_who_is_suspended(self):
        for holder, writer in self.places():
            holder.run(f"{BEGIN}; SELECT * FROM t; UPDATE u SET v = 7 WHERE id = 1")
            pid = holder.pid()
            os.kill(pid, signal.SIGSTOP)
            try:
                writer.run("UPDATE t SET v = 1 WHERE id = 1")
            finally:
                os.kill(pid, signal.SIGCONT)
            self.refused(holder, "COMMIT")

    def test_a_client_that_does_not_take_its_answer(self):
        """A client that leaves the rows that it asked for unread is idle, too."""
        for k in (1, 2):
            with self.subTest(other=k):
                sql = f"{BEGIN}; COPY (SELECT repeat('x', 1000), t.id FROM t, generate_series(1, 100000)) TO STDOUT"
                client = subprocess.Popen([PSQL, "-X", "-q", "-d", self.cluster.dsn(1), "-c", sql], stdout=subprocess.PIPE)
                try:
                    look = self.cluster.session(1)
                    eventually(lambda: look.one("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'ClientWrite'") == "1")
                    self.cluster.session(k).run("UPDATE t SET v = v + 1 WHERE id = 1")
                    self.assertEqual("1", look.one("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'ClientWrite'"))
                finally:
                    client.kill()
                    client.wait()
                    client.stdout.close()

    def test_a_holder_that_works_keeps_its_pages(self):
        for holder, writer in self.places():
            holder.run(f"SET gcl.hold_yield = '{LONG_YIELD}s'; {BEGIN}")
            holder.send(f"SELECT pg_sleep({1.5 * LONG_YIELD}) FROM t WHERE id = 1")
            eventually(lambda: self.cluster.session(1).one("SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep'") == "1")
            writer.send("UPDATE t SET v = 1 WHERE id = 1")
            self.assertTrue(writer.blocked())
            holder.result()
            until = time.monotonic() + 1.2 * LONG_YIELD
            while time.monotonic() < until:
                holder.run("SELECT 1")
                time.sleep(0.02)
            self.assertTrue(writer.waits(0))
            holder.run("UPDATE u SET v = (SELECT v FROM t WHERE id = 1) + 1; COMMIT")
            writer.result()
            self.assertEqual("10", writer.one("SELECT sum(v) FROM u"))

    def test_where_nobody_waits_nothing_is_lost(self):
        for holder, other in self.places():
            holder.run(f"{BEGIN}; SELECT * FROM t")
            other.run("SELECT * FROM t; UPDATE u SET v = 0")
            time.sleep(2 * YIELD)
            holder.run("UPDATE t SET v = 1; COMMIT")

    def test_a_trusted_session_may_hold_for_ever(self):
        for holder, writer in self.places():
            holder.run(f"{FOREVER}; {BEGIN}; SELECT * FROM t")
            writer.send("UPDATE t SET v = 1 WHERE id = 1")
            self.assertTrue(writer.blocked())
            time.sleep(2 * YIELD)
            holder.run("UPDATE t SET v = 2 WHERE id = 1; COMMIT")
            writer.result()

    def test_a_serializable_reader_does_not_wait_for_ever_either(self):
        for holder, other in self.places():
            holder.run(f"{BEGIN}; UPDATE t SET v = 7 WHERE id = 1")
            self.assertEqual("0", other.one(f"{BEGIN}; SELECT sum(v) FROM t"))
            other.run("COMMIT")
            self.refused(holder, "COMMIT")

    # --- the moment of giving up, and a commit ---------------------------------------------------------------------------------

    def test_a_commit_that_was_first_keeps_them(self):
        for holder, writer in self.places():
            holder.run(f"{BEGIN}; SELECT * FROM t; UPDATE u SET v = 7")
            about_to_give = self.stops.attach(1, "holds_unmarked")
            committing = self.stops.attach(1, "xact_prepared", holder.pid())
            writer.send("UPDATE t SET v = (SELECT sum(v) FROM u) WHERE id = 1")
            about_to_give.reached()
            holder.send("COMMIT")
            committing.reached()
            about_to_give.go_on()
            self.assertTrue(writer.waits(2 * YIELD))
            committing.go_on()
            holder.result()
            writer.result()
            self.assertEqual("70", writer.one("SELECT sum(v) FROM u"))

    def test_a_commit_that_was_second_is_refused(self):
        for holder, writer in self.places():
            holder.run(f"{BEGIN}; SELECT * FROM t; UPDATE u SET v = 7")
            giving = self.stops.attach(1, "holds_marked")
            writer.send("UPDATE t SET v = 1 WHERE id = 1")
            giving.reached()
            self.refused(holder, "COMMIT")
            holder.run(f"{FOREVER}; {BEGIN}; SELECT * FROM w")  # the next one holds pages, and they stay
            giving.go_on()
            writer.result()
            self.assertEqual("0", writer.one("SELECT sum(v) FROM u"))
            writer.send("INSERT INTO w VALUES (1)")
            self.assertTrue(writer.blocked())
            holder.run("COMMIT")
            writer.result()


class RandomYield(serializable_test.Random):
    """The random transactions of serializable_test, whose clients pause for about as long as their holds last."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for k in (1, 2, 3):
            cls.cluster.sql(k, "ALTER SYSTEM SET gcl.hold_yield = '2ms'; SELECT pg_reload_conf()")

    def transaction(self, session, steps):
        def paused(take):
            def then(rows):
                take(rows)
                time.sleep(random.choice((0, 0, 0, 0.002, 0.006)))
            return then
        return super().transaction(session, [(sql, paused(take)) for sql, take in steps])


if __name__ == "__main__":
    unittest.main()

"""SERIALIZABLE across primaries: what any order of whole transactions could have done, and nothing else."""
import itertools
import random
import re
import threading
import time
import unittest

import histories
from harness import LONGER, SEED, Cluster, Load, Session, SqlError, eventually, together
from stop_points import STOP_POINTS, Stops

RETRY = {"40001", "40P01"}
PATIENT = "gcl.hold_yield=-1"  # an idle transaction keeps its pages (hold_yield_test.py)
BEGIN = "BEGIN ISOLATION LEVEL SERIALIZABLE"
READ = "SELECT v FROM t WHERE id = 1"
PAUSES = "GclOldTransactions"  # behind a writer, or until one that has ended has let go of its pages


def wait_event(session):
    """Empty while it has none, or is not there yet."""
    look = Session(session.dsn)
    try:
        return "".join(look.run(f"SELECT wait_event FROM pg_stat_activity WHERE application_name = '{session.name}'"))
    finally:
        look.close()


class Two(unittest.TestCase):
    """Interleavings by hand: each is done with both sessions on one primary, and on two."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster(primaries=3, settings=(PATIENT,)))
        cls.cluster.sql(1, """
            CREATE TABLE t (id int PRIMARY KEY, v int NOT NULL) USING gcl;
            CREATE TABLE plain (id int, v int) USING gcl;
            CREATE TABLE doctor (name text PRIMARY KEY, on_call bool NOT NULL) USING gcl;
            CREATE TABLE parent (id int PRIMARY KEY) USING gcl;
            CREATE TABLE child (id int PRIMARY KEY, parent int REFERENCES parent) USING gcl;
            CREATE TABLE local (id int)""")

    def setUp(self):
        self.cluster.close_sessions()
        self.cluster.sql(1, """
            TRUNCATE child, parent, t, plain, doctor;
            INSERT INTO t SELECT i, 0 FROM generate_series(1, 10) i;
            INSERT INTO plain SELECT i, 0 FROM generate_series(1, 10) i;
            INSERT INTO doctor VALUES ('alice', true), ('bob', true);
            INSERT INTO parent VALUES (1)""")

    def places(self):
        """Pairs of sessions."""
        for other in (1, 2):
            with self.subTest(other=other):
                self.setUp()
                yield self.cluster.session(1), self.cluster.session(other)

    def outcome(self, session, sql):
        """None, or the SQLSTATE of a failure that says: run it again."""
        try:
            session.run(sql)
        except SqlError as error:
            self.assertIn(error.state, RETRY, error)
            session.run("ROLLBACK")
            return error.state
        return None

    def race(self, one, two, sql_one, sql_two, states=RETRY):
        """Both have begun and read; each goes on to the end, and would wait for the other.  Which of them has committed."""
        one.send(f"{sql_one}; COMMIT")
        self.assertTrue(one.blocked(still=0))
        two.send(f"{sql_two}; COMMIT")
        done, self.said = [], []
        for session in (one, two):
            try:
                session.result()
                done.append(True)
            except SqlError as error:
                self.assertIn(error.state, states, error)
                done.append(False)
            self.said.append("\n".join(session.collected))
            session.run("ROLLBACK")
        self.assertEqual(1, sum(done))
        return done

    def test_reads_and_writes(self):
        for one, two in self.places():
            one.run(f"{BEGIN}; UPDATE t SET v = v + 1 WHERE id = 1; SELECT * FROM t; INSERT INTO t VALUES (11, 1); COMMIT")
            self.assertEqual("11|2", two.one("SELECT count(*), sum(v) FROM t"))
            two.run(f"{BEGIN}; DELETE FROM t WHERE v = 1; COMMIT")
            self.assertEqual("9", one.one("SELECT count(*) FROM t"))

    def test_write_skew_by_key(self):
        for one, two in self.places():
            for session in (one, two):
                session.run(f"{BEGIN}; SELECT * FROM t WHERE id IN (1, 2)")
            self.race(one, two, "UPDATE t SET v = 1 WHERE id = 1", "UPDATE t SET v = 1 WHERE id = 2")

    def test_write_skew_by_a_count(self):
        for one, two in self.places():
            for session in (one, two):
                self.assertEqual("2", session.one(f"{BEGIN}; SELECT count(*) FROM doctor WHERE on_call"))
            self.race(one, two, "UPDATE doctor SET on_call = false WHERE name = 'alice'",
                      "UPDATE doctor SET on_call = false WHERE name = 'bob'")
            self.assertNotEqual("0", one.one("SELECT count(*) FROM doctor WHERE on_call"))

    def test_write_skew_of_transactions_that_are_read_only_for_a_while(self):
        """A function may be READ ONLY: what it reads counts all the same, or its transaction may change nothing."""
        self.cluster.sql(1, """
            CREATE FUNCTION on_call() RETURNS bigint LANGUAGE sql SET transaction_read_only = on
            AS 'SELECT count(*) FROM doctor WHERE on_call';
            CREATE FUNCTION planned_on_call() RETURNS bigint LANGUAGE sql IMMUTABLE SET transaction_read_only = on
            AS 'SELECT count(*) FROM doctor WHERE on_call';
            CREATE PROCEDURE look() LANGUAGE plpgsql SET transaction_read_only = on
            AS 'BEGIN PERFORM count(*) FROM doctor WHERE on_call; END'""")
        going = ("UPDATE doctor SET on_call = false WHERE name = 'alice'", "UPDATE doctor SET on_call = false WHERE name = 'bob'")
        for look in ("SELECT on_call()", "CALL look()", "DO 'BEGIN PERFORM on_call(); END'"):
            for one, two in self.places():
                for session in (one, two):
                    session.run(f"{BEGIN}; {look}")
                self.race(one, two, *going)
                self.assertNotEqual("0", one.one("SELECT count(*) FROM doctor WHERE on_call"), look)
        for one, two in self.places():  # nothing tells what is to come when it is read
            one.run(BEGIN)
            with self.assertRaises(SqlError) as raised:
                one.run(f"{going[0]} AND planned_on_call() = 2")
            self.assertEqual("25006", raised.exception.state, raised.exception)
            one.run("ROLLBACK")

    def phantoms(self, table, sql):
        """Each reads what the other one inserts a row of."""
        for one, two in self.places():
            for session in (one, two):
                session.run(f"{BEGIN}; {sql}")
            self.race(one, two, f"INSERT INTO {table} VALUES (101, 1)", f"INSERT INTO {table} VALUES (102, 1)")

    def test_phantom_in_an_empty_range(self):
        self.phantoms("t", "SET LOCAL enable_seqscan = off; SELECT count(*) FROM t WHERE id BETWEEN 100 AND 200")

    def test_phantom_in_a_bitmap(self):
        self.phantoms("t", "SET LOCAL enable_seqscan = off; SET LOCAL enable_indexscan = off; SET LOCAL enable_indexonlyscan "
                           "= off; SELECT count(*) FROM t WHERE id BETWEEN 100 AND 200")

    def test_phantom_of_a_whole_table(self):
        self.phantoms("plain", "SELECT count(*) FROM plain WHERE v = 1")

    def test_phantom_in_an_empty_table(self):
        for one, two in self.places():
            self.cluster.sql(1, "TRUNCATE plain")
            for session in (one, two):
                self.assertEqual("0", session.one(f"{BEGIN}; SELECT count(*) FROM plain"))
            self.race(one, two, "INSERT INTO plain VALUES (1, 1)", "INSERT INTO plain VALUES (2, 1)")

    def test_phantom_where_a_leaf_splits(self):
        """The reader's leaf is filled by its own rows; what it read of it is in several leaves then."""
        for one, two in self.places():
            one.run(f"{BEGIN}; SET LOCAL enable_seqscan = off; SELECT count(*) FROM t WHERE id BETWEEN 1 AND 1000000")
            one.run("INSERT INTO t SELECT i, 0 FROM generate_series(1001, 3000) i")
            two.send("INSERT INTO t VALUES (20, 1)")
            self.assertTrue(two.blocked())
            one.run("COMMIT")
            two.result()

    def test_phantom_on_new_pages(self):
        """A table that grows meanwhile: by the maps of primaries that had no page of it."""
        for one, two in self.places():
            one.run(f"{BEGIN}; SELECT count(*) FROM plain")
            two.send("INSERT INTO plain SELECT i, 1 FROM generate_series(1, 2000) i")
            self.assertTrue(two.blocked())
            self.assertEqual("10", one.one("SELECT count(*) FROM plain"))
            one.run("COMMIT")
            two.result()

    def test_a_writer_of_another_level_waits_and_can_be_stopped(self):
        for one, two in self.places():
            one.run(f"{BEGIN}; SELECT * FROM t WHERE id = 1")
            two.run("SET lock_timeout = '200ms'")
            with self.assertRaises(SqlError) as raised:
                two.run("UPDATE t SET v = 1 WHERE id = 1")
            self.assertEqual("55P03", raised.exception.state)
            two.run("SET lock_timeout = 0")
            two.send("UPDATE t SET v = 1 WHERE id = 1")
            self.assertTrue(two.blocked())
            self.assertEqual("0", one.one("SELECT v FROM t WHERE id = 1"))
            one.run("COMMIT")
            two.result()

    def refuses_at_once(self, session, sql):
        """Who waits for another session, which is idle, has no answer at all."""
        with self.assertRaises(SqlError) as raised:
            session.run(sql)
        self.assertEqual("55P03", raised.exception.state)

    def test_nowait(self):
        for level in ("READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"):
            for one, two in self.places():
                # Other rows of the page are apart for serializable transactions of one primary alone.
                row = 1 if level == "SERIALIZABLE" and one.dsn == two.dsn else 2
                one.run(f"{BEGIN}; SELECT * FROM t WHERE id = 1")
                two.run(f"BEGIN ISOLATION LEVEL {level}; SAVEPOINT s")
                for sql in (f"SELECT * FROM t WHERE id = {row} FOR UPDATE NOWAIT", "SELECT * FROM t FOR KEY SHARE NOWAIT"):
                    self.refuses_at_once(two, sql)
                    two.run("ROLLBACK TO s")
                two.run("SELECT * FROM plain FOR UPDATE NOWAIT; ROLLBACK")
                one.run("UPDATE t SET v = 1 WHERE id = 1")
                self.refuses_at_once(two, f"BEGIN ISOLATION LEVEL {level}; SELECT * FROM t WHERE id = {row} FOR SHARE NOWAIT")
                two.run("ROLLBACK")
                one.run("COMMIT")
                self.assertEqual("1", two.one("SELECT v FROM t WHERE id = 1 FOR UPDATE NOWAIT"))

    def test_nowait_is_of_its_query_alone(self):
        """COPY starts none, and waits."""
        for one, two in self.places():
            one.run(f"{BEGIN}; SELECT * FROM t")
            two.run("BEGIN")
            self.refuses_at_once(two, "SELECT * FROM t WHERE id = 1 FOR UPDATE NOWAIT")
            two.run("ROLLBACK")
            two.send("COPY t FROM PROGRAM 'echo 11,1' (FORMAT csv)")
            self.assertTrue(two.blocked())
            one.run("COMMIT")
            two.result()
            self.assertEqual("11", one.one("SELECT count(*) FROM t"))

    def test_skip_locked(self):
        for level in ("READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"):
            for one, two in self.places():
                self.cluster.sql(1, "INSERT INTO t SELECT i, 0 FROM generate_series(11, 2000) i")
                one.run(f"{BEGIN}; SELECT * FROM t WHERE id = 1")
                taken = two.run(f"BEGIN ISOLATION LEVEL {level}; SELECT id FROM t FOR UPDATE SKIP LOCKED")
                self.assertNotIn("1", taken)
                self.assertGreater(len(taken), 1000)
                two.run("ROLLBACK")
                one.run("COMMIT")
                self.assertEqual("2000", two.one("SELECT count(*) FROM (SELECT FROM t FOR UPDATE SKIP LOCKED) t"))

    def test_skip_locked_leaves_out_what_is_written(self):
        for one, two in self.places():
            one.run(f"{BEGIN}; UPDATE t SET v = 1 WHERE id = 1")
            self.assertEqual([], two.run("SELECT id FROM t FOR UPDATE SKIP LOCKED"))
            one.run("COMMIT")
            self.assertEqual("10", two.one("SELECT count(*) FROM (SELECT FROM t FOR UPDATE SKIP LOCKED) t"))

    def test_rows_of_one_page_are_apart_on_one_primary(self):
        """Each writes a row beside the other's, puts a key beside the other's into a leaf, and waits for nobody."""
        one, two, there = (self.cluster.session(k) for k in (1, 1, 2))
        for n, session in ((1, one), (2, two)):
            session.run(f"{BEGIN}; SELECT v FROM t WHERE id = {n}; UPDATE t SET v = {n} WHERE id = {n}; INSERT INTO t VALUES ({100 + n}, {n})")
        there.send("UPDATE t SET v = 9 WHERE id = 3")
        self.assertTrue(there.blocked())
        for session in (one, two):
            session.run("COMMIT")
        there.result()
        self.assertEqual(["1|1", "2|2", "3|9", "101|1", "102|2"], one.run("SELECT id, v FROM t WHERE v > 0 ORDER BY id"))

    def test_readers_of_other_levels_never_wait(self):
        for one, two in self.places():
            one.run(f"{BEGIN}; SELECT count(*) FROM t; UPDATE t SET v = 1")
            self.assertEqual("10|0", two.one("SELECT count(*), sum(v) FROM t"))
            self.assertEqual("0", two.one("SELECT v FROM t WHERE id = 3"))
            two.run("BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY")
            self.assertEqual("10|0", two.one("SELECT count(*), sum(v) FROM t"))
            one.run("COMMIT")
            self.assertEqual("10|0", two.one("SELECT count(*), sum(v) FROM t"))
            two.run("COMMIT")
            self.assertEqual("10", two.one("SELECT sum(v) FROM t"))

    def test_a_serializable_reader_waits_for_a_writer(self):
        for one, two in self.places():
            one.run(f"{BEGIN}; UPDATE t SET v = 1 WHERE id = 1")
            two.run(BEGIN)
            two.send("SELECT v FROM t WHERE id = 1")
            self.assertTrue(two.blocked())
            one.run("COMMIT")
            self.assertEqual(["0"], two.result())  # its snapshot is older: it may read on by that
            with self.assertRaises(SqlError) as raised:
                two.run("UPDATE plain SET v = 1")
            self.assertEqual("40001", raised.exception.state)
            two.run("ROLLBACK")

    def test_what_was_committed_since_the_snapshot_is_a_conflict(self):
        for one, two in self.places():
            one.run(f"{BEGIN}; SELECT * FROM plain")
            two.run("UPDATE t SET v = 1 WHERE id = 1")
            self.assertEqual("0", one.one("SELECT sum(v) FROM t"))
            two.run("UPDATE plain SET v = 1")  # it has no holds any more
            self.assertEqual("0|0", one.one("SELECT (SELECT sum(v) FROM t), (SELECT sum(v) FROM plain)"))
            for sql in ("UPDATE doctor SET on_call = false", "SELECT * FROM doctor FOR UPDATE", "INSERT INTO plain VALUES (11, 1)"):
                one.run("SAVEPOINT s")
                with self.assertRaises(SqlError) as raised:
                    one.run(sql)
                self.assertEqual("40001", raised.exception.state)
                one.run("ROLLBACK TO s")
            one.run("COMMIT")
            one.run(f"{BEGIN}; UPDATE doctor SET on_call = true; SAVEPOINT s")
            two.run("UPDATE t SET v = 2 WHERE id = 1")
            with self.assertRaises(SqlError) as raised:  # it has changed something
                one.run("SELECT * FROM t")
            self.assertEqual("40001", raised.exception.state)
            one.run("ROLLBACK")

    def test_a_deadlock_of_holds_is_found(self):
        for one, two in self.places():
            one.run(f"{BEGIN}; SELECT count(*) FROM t")
            two.run(f"{BEGIN}; SELECT count(*) FROM plain")
            self.race(one, two, "UPDATE plain SET v = 1", "UPDATE t SET v = 1", {"40P01"})

    def test_of_readers_that_write_the_first_goes_on(self):
        """Without waiting for the deadlock check; which finds those of two primaries that ask at the same moment."""
        for one, two in self.places():
            for session in (one, two):
                session.run("SET deadlock_timeout = '1h'" if one.dsn == two.dsn else "RESET deadlock_timeout")
                session.run(f"{BEGIN}; SELECT count(*) FROM t")
            done = self.race(one, two, "UPDATE t SET v = v + 1 WHERE id = 1", "UPDATE t SET v = v + 1 WHERE id = 2")
            if one.dsn != two.dsn:
                continue
            self.assertEqual([True, False], done)
            self.assertRegex(self.said[1], "40001: could not serialize access due to read/write dependencies among transactions")
            self.assertRegex(self.said[1], 'waits to change a page of relation "t" that both have read')

    def test_readers_that_write_one_after_another_get_on(self):
        """As many as there are: each round one of them commits, and none waits for the deadlock check."""
        sessions = [self.cluster.session(1) for _ in range(6)]
        for session in sessions:
            session.run("SET deadlock_timeout = '1h'")
        for session in sessions:
            session.run(f"{BEGIN}; SELECT count(*) FROM t")
        sessions[0].send("UPDATE t SET v = v + 1 WHERE id = 1; COMMIT")
        self.assertTrue(sessions[0].blocked(still=0))
        for k, session in enumerate(sessions[1:], 2):
            self.assertEqual("40001", self.outcome(session, f"UPDATE t SET v = v + 1 WHERE id = {k}"))
        sessions[0].result()
        self.assertEqual("1", sessions[0].one("SELECT sum(v) FROM t"))

    def test_who_waits_for_whose_pages_is_shown(self):
        for one, two in self.places():
            pids, other = (one.pid(), two.pid()), 2 if two.dsn != one.dsn else 1
            one.run(f"{BEGIN}; SELECT * FROM t")
            two.send("UPDATE t SET v = 1 WHERE id = 1")
            self.assertTrue(two.blocked())
            for look in [self.cluster.session(k) for k in (1, 2, 3)]:
                seen = []

                def shown(look=look, seen=seen):
                    seen[:] = look.run("SELECT node, pid, blocked_by_node, blocked_by_pid, waits_for FROM gcl_stat_waits")
                    return len(seen) == 1

                eventually(shown)  # who waited before is shown a moment longer
                node, pid, by_node, by_pid, waits_for = seen[0].split("|")
                self.assertEqual((str(other), str(pids[1]), "1", str(pids[0])), (node, pid, by_node, by_pid))
                self.assertRegex(waits_for, r"^ShareLock on pages of transaction \d+ of primary 1$")
            one.run("COMMIT")
            two.result()

    def test_a_deadlock_names_both(self):
        for one, two in self.places():
            pids = {str(one.pid()), str(two.pid())}
            one.run(f"{BEGIN}; SELECT count(*) FROM t")
            two.run(f"{BEGIN}; SELECT count(*) FROM plain")
            done = self.race(one, two, "UPDATE plain SET v = 1", "UPDATE t SET v = 1", {"40P01"})
            victim = self.said[0 if not done[0] else 1]
            detail = re.findall(r"Process (\d+) of primary \d waits for ShareLock on pages of transaction \d+ of primary \d; "
                                r"blocked by process (\d+) of primary \d\.", victim)
            self.assertEqual(2, len(detail), victim)
            self.assertEqual([pids, pids], [set(pair) for pair in detail])

    def stands(self, reader):
        """Whether it stands behind a writer.  Else it has an answer."""
        while reader.waits(0.02):
            if wait_event(reader) == PAUSES:
                return True
        return False

    def comes_first(self, writer, reader):
        """Whether the writer does."""
        for _ in range(int(writer.answer_max / 0.04)):
            if not writer.waits(0.02):
                return True
            if not reader.waits(0.02):
                return False
        self.fail("neither of them has an answer")

    def readers_before(self, writer, places):
        """How many have ended when the writer comes: the next one holds the page, or stands behind it, before one ends."""
        places = itertools.cycle(places)
        holder = self.cluster.session(next(places))
        holder.run(f"{BEGIN}; {READ}")
        writer.send("UPDATE t SET v = v + 1 WHERE id = 1")
        self.assertTrue(writer.blocked())
        ended, came = 0, False
        while not came and ended < 12:
            reader = self.cluster.session(next(places))
            reader.send(f"{BEGIN}; {READ}")
            self.stands(reader)
            holder.run("COMMIT")
            ended, came, holder = ended + 1, self.comes_first(writer, reader), reader
            reader.result()
        holder.run("COMMIT")
        writer.result()
        return ended

    def test_readers_that_overlap_do_not_keep_a_writer_waiting(self):
        """There is always one that holds the page.  Each primary has to tell the writer so once, no more."""
        for places in ((1,), (2,), (1, 2)):
            for other in (1, 2, 3):
                with self.subTest(readers=places, writer=other):
                    self.setUp()
                    self.assertLessEqual(self.readers_before(self.cluster.session(other), places), 4)

    def test_a_writer_that_gives_up_keeps_no_reader(self):
        """It was refused by both primaries, one after the other; the first one hears no more of it."""
        first, second, writer, third = (self.cluster.session(k) for k in (1, 2, 3, 1))
        first.run(f"{BEGIN}; {READ}")
        writer.send("UPDATE t SET v = v + 1 WHERE id = 1")
        self.assertTrue(writer.blocked())
        second.run(f"{BEGIN}; {READ}")
        first.run("COMMIT")
        look = self.cluster.session(3)
        eventually(lambda: look.run("SELECT blocked_by_node FROM gcl_stat_waits WHERE node = 3") == ["2"])
        look.run(f"SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = '{writer.name}'")
        with self.assertRaises(SqlError) as raised:
            writer.result()
        self.assertEqual("57014", raised.exception.state)
        third.run(f"{BEGIN}; {READ}")
        for session in (second, third):
            session.run("COMMIT")

    def test_readers_that_stand_behind_a_writer_are_in_no_deadlock(self):
        for one, two in self.places():
            writer = self.cluster.session(3)
            one.run(f"{BEGIN}; SELECT * FROM t WHERE id = 1")
            writer.send("UPDATE t SET v = 1 WHERE id = 1")
            self.assertTrue(writer.blocked())
            two.run(f"{BEGIN}; SELECT * FROM plain")
            two.send("SELECT * FROM t WHERE id = 1")  # behind the writer, which waits for one
            one.send("UPDATE plain SET v = 1")        # waits for two
            two.result()
            two.run("COMMIT")
            one.result()
            one.run("COMMIT")
            writer.result()

    def test_a_deadlock_of_a_hold_and_a_row_lock_is_found(self):
        for one, two in self.places():
            two.run("BEGIN; UPDATE plain SET v = 1 WHERE id = 1")
            one.run(f"{BEGIN}; SELECT count(*) FROM t")
            self.race(one, two, "UPDATE plain SET v = 2 WHERE id = 1", "UPDATE t SET v = 1 WHERE id = 1")

    def test_foreign_keys(self):
        for one, two in self.places():
            one.run(f"{BEGIN}; SELECT * FROM parent")
            two.run(f"{BEGIN}; SELECT * FROM child")
            self.race(one, two, "INSERT INTO child VALUES (1, 1)", "DELETE FROM parent WHERE id = 1")
            self.assertEqual("0", one.one("SELECT count(*) FROM child WHERE parent NOT IN (SELECT id FROM parent)"))

    def test_a_duplicate_that_was_met_is_read(self):
        """That a key is there, is known by the error; so its row is held."""
        for one, two in self.places():
            one.run(f"{BEGIN}; SELECT * FROM plain WHERE id = 1; SAVEPOINT s")
            with self.assertRaises(SqlError) as raised:
                one.run("INSERT INTO t VALUES (5, 5)")
            self.assertEqual("23505", raised.exception.state)
            one.run("ROLLBACK TO s")
            two.send("DELETE FROM t WHERE id = 5")
            self.assertTrue(two.blocked())
            one.run("COMMIT")
            two.result()

    def test_on_conflict(self):
        for one, two in self.places():
            one.run(f"{BEGIN}; INSERT INTO t VALUES (5, 5), (50, 5) ON CONFLICT DO NOTHING")
            for sql in ("DELETE FROM t WHERE id = 5", "INSERT INTO t VALUES (51, 1)"):
                two.send(sql)
                self.assertTrue(two.blocked())
                self.cluster.session(1 if two.dsn == one.dsn else 2).run(
                    f"SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = '{two.name}'")
                with self.assertRaises(SqlError) as raised:
                    two.result()
                self.assertEqual("57014", raised.exception.state)
            one.run("COMMIT")

    def test_a_savepoint_that_is_rolled_back_keeps_what_it_read(self):
        for one, two in self.places():
            one.run(f"{BEGIN}; SAVEPOINT s; SELECT * FROM t WHERE id = 1; ROLLBACK TO s")
            two.send("UPDATE t SET v = 1 WHERE id = 1")
            self.assertTrue(two.blocked())
            one.run("COMMIT")
            two.result()

    def test_nothing_is_held_after_an_error(self):
        for one, two in self.places():
            with self.assertRaises(SqlError):
                one.run(f"{BEGIN}; SELECT * FROM t; SELECT 1 / (v - v) FROM t")
            two.run("UPDATE t SET v = 1")
            one.run("ROLLBACK")

    def test_nothing_is_held_when_the_session_is_gone(self):
        for one, two in self.places():
            one.run(f"{BEGIN}; SELECT * FROM t")
            pid = one.pid()
            two.send("UPDATE t SET v = 1")
            self.assertTrue(two.blocked())
            self.cluster.session(1).run(f"SELECT pg_terminate_backend({pid})")
            two.result()

    def test_local_tables_are_refused_beside(self):
        session = self.cluster.session(1)
        for sql in ("SELECT * FROM local; SELECT * FROM t", "SELECT * FROM t; SELECT * FROM local", "SELECT * FROM t, local",
                    "SELECT * FROM t; COPY local TO STDOUT", "INSERT INTO local VALUES (1); INSERT INTO t VALUES (99, 1)"):
            with self.subTest(sql=sql), self.assertRaises(SqlError) as raised:
                session.run(f"{BEGIN}; {sql}")
            session.run("ROLLBACK")
            self.assertEqual("0A000", raised.exception.state)
        session.run(f"{BEGIN}; CREATE TEMP TABLE mine AS SELECT * FROM t; SELECT * FROM mine, t; COMMIT; DROP TABLE mine")
        session.run(f"{BEGIN}; INSERT INTO local VALUES (1); SELECT * FROM local; COMMIT")

    def test_there_is_a_bound_and_a_lock_instead(self):
        session, other = self.cluster.session(1), self.cluster.session(2)
        self.cluster.sql(1, "INSERT INTO plain SELECT i, 0 FROM generate_series(1, 20000) i")
        session.run("SET gcl.max_page_holds = 16")
        for sql in ("UPDATE t SET v = 1; SELECT count(*) FROM plain", "SELECT count(*) FROM plain; UPDATE t SET v = 1",
                    "UPDATE plain SET v = 1", "SELECT count(*) FROM plain; CREATE TABLE made (i int) USING gcl; COMMIT"):
            with self.subTest(sql=sql), self.assertRaises(SqlError) as raised:
                session.run(f"{BEGIN}; {sql}")
            self.assertEqual("53400", raised.exception.state)
            session.run("ROLLBACK")
        self.assertEqual("20010", session.one(f"{BEGIN}; LOCK TABLE plain IN SHARE MODE; SELECT count(*) FROM plain"))
        other.send("INSERT INTO plain VALUES (1, 1)")
        self.assertTrue(other.blocked())
        session.run("COMMIT")
        other.result()
        session.run(f"{BEGIN}; LOCK TABLE plain IN ACCESS EXCLUSIVE MODE; UPDATE plain SET v = 1; COMMIT")
        session.run(f"{BEGIN}; CREATE TABLE made USING gcl AS SELECT i FROM generate_series(1, 50000) i; COMMIT; DROP TABLE made")

    def test_with_more_than_it_may_hold_a_transaction_reads_on(self):
        """Of more pages than the primary has room for: as READ ONLY from the start, so it stops nobody any more."""
        self.cluster.sql(1, "CREATE TABLE large (i int, pad text) USING gcl; ALTER TABLE large ALTER pad SET STORAGE PLAIN;"
                            "INSERT INTO large SELECT i, repeat('x', 4000) FROM generate_series(1, 12000) i")
        try:
            for one, two in ((self.cluster.session(1), self.cluster.session(k)) for k in (1, 2)):
                before = one.run(f"{BEGIN}; SELECT count(*), sum(v) FROM plain; SELECT count(*), sum(i) FROM large")
                two.run("INSERT INTO large VALUES (12001, ''); UPDATE plain SET v = v + 1; UPDATE large SET pad = '' WHERE i < 10")
                self.assertEqual(before, one.run("SELECT count(*), sum(v) FROM plain; SELECT count(*), sum(i) FROM large"))
                one.run("COMMIT")
                two.run("DELETE FROM large WHERE i > 12000")
                one.run(f"{BEGIN}; SELECT * FROM t")  # the next one holds again
                two.send("UPDATE t SET v = 1")
                self.assertTrue(two.blocked())
                one.run("COMMIT")
                two.result()
        finally:
            self.cluster.close_sessions()
            self.cluster.sql(1, "DROP TABLE large")

    def test_vacuum_goes_on(self):
        one, two = self.cluster.session(1), self.cluster.session(2)
        two.run("DELETE FROM t WHERE id > 5")
        one.run(f"{BEGIN}; SELECT * FROM t WHERE id = 1; SELECT * FROM plain")
        two.run("VACUUM t")
        two.run("VACUUM plain")
        one.run("COMMIT")
        two.run("VACUUM t, plain")

    def test_two_phases_are_refused(self):
        session = self.cluster.session(1)
        with self.assertRaises(SqlError) as raised:
            session.run(f"{BEGIN}; SELECT * FROM t; PREPARE TRANSACTION 'x'")
        self.assertEqual("0A000", raised.exception.state)

    def test_parallel_plans_do_without_workers(self):
        session, other = self.cluster.session(1), self.cluster.session(2)
        session.run("SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0")
        self.assertEqual("10", session.one(f"{BEGIN}; SELECT count(*) FROM plain"))
        other.send("INSERT INTO plain VALUES (1, 1)")
        self.assertTrue(other.blocked())
        session.run("COMMIT")
        other.result()
        self.assertEqual("11", session.one(f"{BEGIN} READ ONLY; SELECT count(*) FROM plain; COMMIT"))


class Random(unittest.TestCase):
    """Random transactions on all primaries, and a judge of what each has read (histories.py)."""

    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster(primaries=3))
        cls.cluster.sql(1, """
            CREATE TABLE list (k int PRIMARY KEY, items text NOT NULL DEFAULT '') USING gcl;
            CREATE TABLE account (id int PRIMARY KEY, balance int NOT NULL) USING gcl;
            INSERT INTO account SELECT i, 100 FROM generate_series(1, 20) i""")

    def many(self, work, seconds, enough):
        """Calls work(session, random, n) again and again, in sessions of all primaries, until it is enough()."""
        load = Load(seconds * LONGER, enough)

        def goes_on(n):
            session = self.cluster.session(n % 3 + 1)
            session.run("SET deadlock_timeout = '20ms'")
            chance = random.Random(SEED * 100 + n)
            while load.goes_on():
                work(session, chance, n)
        self.assertEqual([], together([lambda n=n: goes_on(n) for n in range(6)], load))

    def transaction(self, session, steps):
        """Runs steps, (sql, what to do with the answer); whether they were committed."""
        try:
            session.run(BEGIN)
            for sql, take in steps:
                take(session.run(sql))
            session.run("COMMIT")
            return True
        except SqlError as error:
            session.run("ROLLBACK")
            self.assertIn(error.state, RETRY, error)
            return False

    def lists(self, read, append, rows, least):
        """Each transaction reads some lists, and appends an item of its own to others; the lists say in which order."""
        history, lock, count = histories.History(), threading.Lock(), [0]

        def work(session, chance, n):
            with lock:
                count[0] += 1
                name = count[0]
            reads, appends, steps = {}, [], []
            for key in chance.sample(range(8), chance.randint(1, 4)):
                if chance.random() < 0.5:
                    steps.append((read.format(key=key),
                                  lambda rows, key=key: reads.__setitem__(key, rows[0].split() if rows else [])))
                else:
                    appends.append(key)
                    steps.append((append.format(key=key, name=name), lambda rows: None))
            began = time.monotonic()
            if self.transaction(session, steps):
                with lock:
                    history.add(str(name), reads, appends, began, time.monotonic())
        self.many(work, 8, lambda: len(history.transactions) > least)
        session = self.cluster.session(1)
        final = {int(k): items.split() for k, items in (row.split("|") for row in session.run(rows))}
        self.assertGreater(len(history.transactions), least)
        history.judge(final)

    def test_lists_of_a_table_each(self):
        self.cluster.sql(1, "".join(f"CREATE TABLE list{key} (items text NOT NULL) USING gcl; INSERT INTO list{key} VALUES ('');"
                                    for key in range(8)))
        self.lists("SELECT items FROM list{key}", "UPDATE list{key} SET items = items || ' {name}'",
                   " UNION ALL ".join(f"SELECT {key}, items FROM list{key}" for key in range(8)), 50)

    def test_lists_of_one_table(self):
        """Most of them meet on pages that they want for different lists, and few are committed."""
        self.lists("SELECT items FROM list WHERE k = {key}", "INSERT INTO list VALUES ({key}, ' {name}') ON CONFLICT (k) "
                   "DO UPDATE SET items = list.items || ' {name}'", "TABLE list", 5)

    def test_bank(self):
        """Money is moved; a transaction that looks, at any primary and READ ONLY or not, finds all of it."""
        looks = []

        def work(session, chance, n):
            seen = []
            if n == 0:
                session.run("BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY")
                looks.append(session.one("SELECT sum(balance) FROM account"))
                session.run("COMMIT")
            elif n == 1:
                if self.transaction(session, [("SELECT sum(balance) FROM account", seen.extend)]):
                    looks.extend(seen)
            else:
                a, b = chance.sample(range(1, 21), 2)
                amount = chance.randint(1, 50)
                self.transaction(session, [(f"SELECT balance FROM account WHERE id = {a}", seen.extend),
                                           (f"UPDATE account SET balance = balance - {amount} WHERE id = {a}", seen.extend),
                                           (f"UPDATE account SET balance = balance + {amount} WHERE id = {b}", seen.extend)])
        self.many(work, 6, lambda: len(looks) > 1)
        self.assertEqual({"2000"}, set(looks))

    def test_read_only_anomaly(self):
        """Fekete's: withdraw with a charge if both balances together are too low; a reader between must not be misled."""
        for _ in range(5 * LONGER):
            self.cluster.sql(1, "UPDATE account SET balance = 0 WHERE id IN (1, 2)")
            two, one, reader = (self.cluster.session(k) for k in (1, 2, 3))
            two.run(f"{BEGIN}; SELECT sum(balance) FROM account WHERE id IN (1, 2)")
            one.run("SET lock_timeout = '25s'")
            try:
                one.run(f"{BEGIN}; UPDATE account SET balance = balance + 20 WHERE id = 2; COMMIT")
                deposited = True
            except SqlError as error:
                self.assertIn(error.state, RETRY | {"55P03"})
                one.run("ROLLBACK")
                deposited = False
            reader.run("BEGIN ISOLATION LEVEL SERIALIZABLE READ ONLY")
            seen = reader.run("SELECT balance FROM account WHERE id IN (1, 2) ORDER BY id")
            reader.run("COMMIT")
            try:
                two.run("UPDATE account SET balance = balance - 11 WHERE id = 1; COMMIT")
                charged = True
            except SqlError as error:
                self.assertIn(error.state, RETRY)
                two.run("ROLLBACK")
                charged = False
            self.assertFalse(deposited and charged and seen == ["0", "20"])
            for session in (one, two, reader):
                session.close()


class Judge(unittest.TestCase):
    """The judge sees what is forbidden."""

    def judged(self, final, *transactions):
        history = histories.History()
        for t in transactions:
            history.add(*t)
        history.judge(final)

    def refused(self, *history):
        self.assertRaises(histories.Anomaly, self.judged, *history)

    def test_what_is_fine(self):
        self.judged({1: ["a", "b"], 2: ["b"]}, ("a", {2: []}, [1], 0, 1), ("b", {1: ["a"]}, [1, 2], 2, 3),
                    ("c", {1: ["a", "b"], 2: ["b"]}, [], 2.5, 4))

    def test_write_skew(self):
        self.refused({1: ["a"], 2: ["b"]}, ("a", {2: []}, [1], 0, 9), ("b", {1: []}, [2], 0, 9))

    def test_lost_update(self):
        self.refused({1: ["a"]}, ("a", {}, [1], 0, 9), ("b", {}, [1], 0, 9))

    def test_what_was_rolled_back(self):
        self.refused({1: ["a"]}, ("b", {1: ["a"]}, [], 0, 9))
        self.refused({1: []}, ("b", {1: ["a"]}, [], 0, 9))

    def test_long_fork(self):
        self.refused({1: ["a"], 2: ["b"]}, ("a", {}, [1], 0, 9), ("b", {}, [2], 0, 9), ("c", {1: ["a"], 2: []}, [], 0, 9),
                     ("d", {1: [], 2: ["b"]}, [], 0, 9))

    def test_what_is_stale(self):
        self.refused({1: ["a"]}, ("a", {}, [1], 0, 1), ("b", {1: []}, [], 2, 3))


class Strict(unittest.TestCase):
    """Pages are held until the commit is there for all primaries, not a moment less."""

    def test_nobody_comes_between_what_was_read_and_the_commit(self):
        with Cluster(primaries=2, settings=(STOP_POINTS, PATIENT)) as cluster:
            cluster.sql(1, "CREATE TABLE t (v int) USING gcl; CREATE TABLE u (v int) USING gcl; INSERT INTO t VALUES (0); "
                           "INSERT INTO u VALUES (0)")
            stops = Stops(cluster)
            for point in ("xact_prepared", "xact_locally_committed", "txn_committing"):
                for k in (1, 2):
                    with self.subTest(point=point, other=k):
                        one, two = cluster.session(1), cluster.session(k)
                        one.run(f"{BEGIN}; SELECT * FROM t; UPDATE u SET v = v + 1")
                        stop = stops.attach(1, point, one.pid(), 1)
                        one.send("COMMIT")
                        stop.reached()
                        two.send("UPDATE t SET v = v + 1")
                        if point == "txn_committing":  # it has ended already, for those that wait for it
                            eventually(lambda two=two: wait_event(two) in (PAUSES, "GclPeer"))
                        else:
                            self.assertTrue(two.blocked())
                        stop.go_on()
                        one.result()
                        two.result()
                        one.close(), two.close()


class Death(unittest.TestCase):
    def test_holds_of_a_primary_go_with_it(self):
        with Cluster(primaries=3, settings=(PATIENT,)) as cluster:
            cluster.sql(1, "CREATE TABLE t (id int PRIMARY KEY, v int) USING gcl; INSERT INTO t VALUES (1, 0), (2, 0)")
            holder, waiter = cluster.session(2), cluster.session(1)
            holder.run(f"{BEGIN}; SELECT * FROM t; UPDATE t SET v = 1 WHERE id = 2")
            waiter.send("UPDATE t SET v = 2 WHERE id = 1")
            self.assertTrue(waiter.blocked())
            cluster.kill_all(2)
            waiter.result(60)
            self.assertEqual(["1|2", "2|0"], waiter.run("SELECT * FROM t ORDER BY id"))
            waiter.run(f"{BEGIN}; UPDATE t SET v = 3; COMMIT")
            cluster.start(2)
            eventually(lambda: cluster.session(2).one("SELECT sum(v) FROM t") == "6")


class NoLocks(unittest.TestCase):
    """The server has no room for another lock when a transaction first touches a gcl table."""

    def test_a_touch_that_failed_counts_for_nothing(self):
        cluster = self.enterContext(Cluster(primaries=1, settings=(PATIENT, "max_locks_per_transaction=10", "max_connections=20")))
        cluster.sql(1, "CREATE TABLE t (id int PRIMARY KEY, v int NOT NULL) USING gcl; INSERT INTO t VALUES (1, 0)")
        holder, writer = cluster.session(1), cluster.session(1)
        holder.run(f"SELECT * FROM t; {BEGIN}; SAVEPOINT s")
        for sql in ("SELECT pg_advisory_lock(i) FROM generate_series(1, 1000000) i", "SELECT * FROM t"):
            with self.assertRaises(SqlError) as raised:
                holder.run(sql)
            self.assertEqual("53200", raised.exception.state)
            holder.run("ROLLBACK TO s")
        holder.run("SELECT pg_advisory_unlock_all(); SELECT * FROM t")
        writer.send("UPDATE t SET v = 1")
        self.assertTrue(writer.blocked(), "the page is held")
        holder.run("COMMIT")
        writer.result()


if __name__ == "__main__":
    unittest.main()

"""Stop points, and interleavings of three primaries that only they reach: each stops a process between two of its steps, lets
others act there, and has it go on."""
import pathlib
import re
import unittest

from harness import Cluster, SqlError, eventually
from stop_points import STOP_POINTS, FUNCTIONS, Stops

BY_INDEX = "SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off;"


class OnThree(unittest.TestCase):
    """Three primaries, and a session on each."""

    @classmethod
    def setUpClass(cls):
        if cls is OnThree:
            raise unittest.SkipTest("of others")
        cls.cluster = cls.enterClassContext(Cluster(primaries=3, settings=(STOP_POINTS, "autovacuum=off")))

    def setUp(self):
        self.stops = Stops(self.cluster)
        self.one, self.two, self.three = (self.cluster.session(k) for k in (1, 2, 3))
        self.addCleanup(self.cluster.close_sessions)
        self.addCleanup(self.stops.detach_all)

    def attach(self, session, point, arrival=1):
        k = {self.one: 1, self.two: 2, self.three: 3}[session]
        return self.stops.attach(k, point, session.pid(), arrival)

    def fails(self, state, call, *arguments):
        with self.assertRaises(SqlError) as caught:
            call(*arguments)
        self.assertEqual(state, caught.exception.state, caught.exception)
        return caught.exception


class TheFacility(OnThree):
    def test_a_process_stands_where_it_was_told_and_shows_it(self):
        self.one.run("CREATE TABLE shown (v int) USING gcl")
        stop = self.attach(self.one, "heap_row_inserted", 3)
        self.one.run("INSERT INTO shown VALUES (1)")
        self.one.send("INSERT INTO shown VALUES (2), (3), (4)")
        pid = stop.reached()
        shown = f"SELECT wait_event_type, wait_event FROM pg_stat_activity WHERE pid = {pid}"
        eventually(lambda: self.cluster.sql(1, shown) == ["LWLock|GclStop_heap_row_inserted"])
        self.assertEqual([f"{pid}|3|3|{pid}"], stop.sight("pid, arrival, arrivals, stopped"))
        self.assertEqual(["1"], self.cluster.sql(2, "SELECT count(*) FROM shown"))
        stop.go_on()
        self.one.result()
        self.fails("55000", stop.go_on)
        self.assertEqual(["4"], self.cluster.sql(2, "SELECT count(*) FROM shown"))
        self.one.run("INSERT INTO shown VALUES (5)")  # the attachment is spent

    def test_an_interrupt_ends_a_stop_at_once(self):
        self.one.run("CREATE TABLE cut (v int) USING gcl; INSERT INTO cut VALUES (0)")
        for end, state in (("pg_cancel_backend", "57014"), ("pg_terminate_backend", "57P01")):
            with self.subTest(end):
                stop = self.attach(self.one, "heap_row_updated")
                self.one.send("UPDATE cut SET v = v + 1")
                pid = stop.reached()
                self.cluster.sql(1, f"SELECT {end}({pid})")
                self.fails(state, self.one.result)
                stop.left()
                self.assertEqual("0", self.two.one("SELECT v FROM cut"))
                self.assertEqual([], self.two.run("UPDATE cut SET v = v"))

    def test_where_interrupts_are_held_off_the_stop_ends_and_the_commit_stands(self):
        self.one.run("CREATE TABLE kept (v int) USING gcl; INSERT INTO kept VALUES (0)")
        for point in ("xact_locally_committed", "txn_committing", "txn_committed"):
            with self.subTest(point):
                one = self.cluster.session(1)
                before = int(self.two.one("SELECT v FROM kept"))
                stop = self.stops.attach(1, point, one.pid())
                one.send("UPDATE kept SET v = v + 1")
                pid = stop.reached()
                self.cluster.sql(1, f"SELECT pg_terminate_backend({pid})")
                try:
                    one.result()  # before it ends
                except SqlError as error:
                    self.assertEqual("57P01", error.state)
                stop.left()
                eventually(lambda pid=pid: self.cluster.sql(1, f"SELECT count(*) FROM pg_stat_activity WHERE pid = {pid}") == ["0"])
                self.assertEqual(str(before + 1), self.two.one("SELECT v FROM kept"))

    def test_wrong_use_is_refused(self):
        control = self.stops.control(1)
        attach = "SELECT pg_temp.gcl_stop_attach('{}', {}, {})".format
        self.fails("22023", control.run, attach("nowhere", 0, 1))
        self.fails("22023", control.run, attach("txn_committed", 0, 0))
        self.fails("22023", control.run, attach("txn_committed", -1, 1))
        self.fails("55000", control.run, "SELECT pg_temp.gcl_stop_wakeup('txn_committed', 0)")
        for _ in range(32):
            control.run(attach("ddl_locked", 1, 1))
        self.fails("53400", control.run, attach("ddl_locked", 1, 1))
        self.assertEqual("32", control.one("SELECT pg_temp.gcl_stop_detach('ddl_locked', 0)"))
        control.run("CREATE ROLE stopper; SET ROLE stopper")
        for call in (attach("txn_committed", 0, 1), "SELECT pg_temp.gcl_stop_wakeup('txn_committed', 0)",
                     "SELECT pg_temp.gcl_stop_detach('txn_committed', 0)", "SELECT * FROM pg_temp.gcl_stop_list()"):
            self.fails("42501", control.run, call)
        control.run("RESET ROLE; DROP ROLE stopper")

    # What comes to each point, and counts there.
    WORK = """
        CREATE TABLE w (id serial PRIMARY KEY, v int, t text) USING gcl; ALTER TABLE w ALTER t SET STORAGE EXTERNAL;
        INSERT INTO w (v, t) SELECT 0, repeat('x', 20000) FROM generate_series(1, 3);
        INSERT INTO w (v) SELECT i FROM generate_series(1, 2000) i;
        BEGIN; CREATE TABLE w2 (v int) USING gcl; ALTER TABLE w ADD COLUMN z int; COMMIT;
        DELETE FROM w WHERE id > 100"""

    def test_every_point_is_come_to(self):
        points = self.point_names()
        control = {k: self.stops.control(k) for k in (1, 2)}
        for point in points:
            for session in control.values():
                session.run(f"SELECT pg_temp.gcl_stop_attach('{point}', 0, 1000000)")
        self.one.run(self.WORK)
        self.two.run(BY_INDEX + "SELECT count(*) FROM w WHERE id > 0; SELECT count(*) FROM w")
        self.one.run("BEGIN; UPDATE w SET v = 1 WHERE id = 2")
        self.two.send("UPDATE w SET v = v + 1 WHERE id = 2")
        self.assertTrue(self.two.blocked())
        self.one.run("COMMIT")
        self.two.result()
        # A chain that is longer than what is read without a copy of the page.
        self.one.run("UPDATE w SET v = v + 1 WHERE id = 3; " * 6)
        self.two.run(BY_INDEX + "SELECT v FROM w WHERE id = 3")
        self.one.run("VACUUM w")
        # Readers of another primary hint pages that are theirs.
        self.two.run("BEGIN; INSERT INTO w (v) VALUES (3); ROLLBACK; SELECT count(*) FROM w")
        # A holder that is idle while one waits for its pages (serializable.idle-gives-up).
        self.two.run("BEGIN ISOLATION LEVEL SERIALIZABLE; SELECT count(*) FROM w")
        self.one.run("UPDATE w SET v = v + 1 WHERE id = 3")
        self.two.run("ROLLBACK")
        eventually(lambda: self.one.run("VACUUM w") is not None and not (missing := self.not_come_to(control)) or print(missing), 60)

    def point_names(self):
        error = self.fails("22023", self.stops.control(1).run, "SELECT pg_temp.gcl_stop_attach('', 0, 1)")
        self.assertIn("no stop point", str(error))
        header = pathlib.Path(__file__).parents[2] / "extension/engine/stop/stop_point.hpp"
        names = re.findall(r'^  POINT\(k\w+, "(\w+)"\)', header.read_text(encoding="utf-8"), re.M)
        self.assertGreater(len(names), 20)
        return names

    @staticmethod
    def not_come_to(control):
        counts = {}
        for session in control.values():
            for row in session.run("SELECT point, arrivals FROM pg_temp.gcl_stop_list()"):
                point, arrivals = row.split("|")
                counts[point] = counts.get(point, 0) + int(arrivals)
        return [point for point, arrivals in counts.items() if arrivals == 0]


class SwitchedOff(unittest.TestCase):
    def test_a_server_has_no_stop_points_unless_it_was_asked_for_them(self):
        with Cluster(primaries=1) as cluster:
            control = cluster.session(1)
            control.run(FUNCTIONS)
            for call in ("SELECT pg_temp.gcl_stop_attach('txn_committed', 0, 1)", "SELECT * FROM pg_temp.gcl_stop_list()"):
                with self.assertRaises(SqlError) as caught:
                    control.run(call)
                self.assertEqual("55000", caught.exception.state)
            with self.assertRaises(SqlError) as caught:
                control.run("SET gcl.stop_points = on")
            self.assertEqual("55P02", caught.exception.state)


class Schedules(OnThree):
    def test_a_row_is_changed_again_between_two_steps_of_the_walk_to_its_newest_version(self):
        """One holds the row; two waits for it, and follows to one's version; three has made another before two reads that."""
        self.one.run("CREATE TABLE chain (id int PRIMARY KEY, v int) USING gcl")
        for by_three, expected, left in (("UPDATE chain SET v = v + 10", ["111"], ["111"]), ("DELETE FROM chain", [], []),
                                         ("UPDATE chain SET id = 2", [], ["1"])):
            with self.subTest(by_three):
                self.one.run("DELETE FROM chain; INSERT INTO chain VALUES (1, 0)")
                self.one.run("BEGIN; UPDATE chain SET v = v + 1")
                step = self.attach(self.two, "heap_chain_followed")
                self.two.send("UPDATE chain SET v = v + 100 WHERE id = 1 RETURNING v")
                self.assertTrue(self.two.blocked())
                self.one.run("COMMIT")
                step.reached()
                self.three.run(by_three)
                self.one.run("VACUUM chain")
                step.go_on()
                self.assertEqual(expected, self.two.result())
                self.assertEqual([left] * 3, self.cluster.everywhere("SELECT v FROM chain"))

    def test_a_page_that_is_split_and_not_linked_is_read_and_changed_by_others(self):
        """One stands between the two halves of a split; two reads by the right link alone; three inserts on both sides of it."""
        self.one.run("CREATE TABLE split (id int PRIMARY KEY) USING gcl; INSERT INTO split SELECT i * 4 FROM generate_series(1, 2000) i")
        halves = self.attach(self.one, "blink_split_unlinked")
        self.one.send("INSERT INTO split SELECT i * 4 + 1 FROM generate_series(900, 1500) i")
        halves.reached()
        self.two.run(BY_INDEX)
        # A scan looks for each, from the right: it must find the half that has its end, and cannot go right from there.
        keys = "SELECT count(*) FROM generate_series(1, 2000) i WHERE (SELECT id FROM split WHERE id <= i * 4 ORDER BY id DESC LIMIT 1) = i * 4"
        self.assertEqual("2000", self.two.one(keys))
        for order in ("", "DESC"):
            self.assertEqual([str(i * 4) for i in sorted(range(800, 1600), reverse=bool(order))],
                             self.two.run(f"SELECT id FROM split WHERE id BETWEEN 3200 AND 6399 ORDER BY id {order}"))
        self.three.run("INSERT INTO split SELECT i * 4 + 2 FROM generate_series(800, 1600) i")
        with self.assertRaises(SqlError) as caught:
            self.three.run("INSERT INTO split SELECT i * 4 + 2 FROM generate_series(1000, 1600) i")
        self.assertEqual("23505", caught.exception.state)
        self.assertEqual("2801", self.two.one("SELECT count(*) FROM split WHERE id > 0"))
        halves.go_on()
        self.one.result()
        for way in (BY_INDEX, "SET enable_indexscan = off; SET enable_indexonlyscan = off; SET enable_bitmapscan = off;"):
            self.assertEqual([[str(2000 + 801 + 601)]] * 3, self.cluster.everywhere(f"{way} SELECT count(*) FROM split WHERE id > 0"))
        self.assertEqual([["2000"]] * 3, self.cluster.everywhere(BY_INDEX + keys))

    def test_a_commit_without_a_timestamp_is_finished_by_the_session_that_meets_it(self):
        """One has moved the clock and stands there: two and three decide its time, and go on with its row."""
        self.one.run("CREATE TABLE decided (v int) USING gcl")
        self.three.run("BEGIN ISOLATION LEVEL REPEATABLE READ")
        self.assertEqual("0", self.three.one("SELECT count(*) FROM decided"))
        commit = self.attach(self.one, "txn_committing")
        self.one.send("INSERT INTO decided VALUES (1)")
        commit.reached()
        self.assertEqual("0", self.two.one("SELECT count(*) FROM decided"))  # which is older than the time it gives
        self.assertEqual("1", self.two.one("SELECT count(*) FROM decided"))
        self.assertEqual("0", self.three.one("SELECT count(*) FROM decided"))
        self.assertEqual(["2"], self.two.run("UPDATE decided SET v = v + 1 RETURNING v"))
        self.three.run("COMMIT")
        self.assertEqual(["3"], self.three.run("UPDATE decided SET v = v + 1 RETURNING v"))
        commit.go_on()
        self.one.result()
        self.assertEqual([["3"]] * 3, self.cluster.everywhere("SELECT v FROM decided"))

    def test_a_waiter_goes_on_when_the_committer_has_not_yet_woken_it(self):
        """Between the final status and the wakeup: two waits for the row since before, and looks again by itself; three comes then."""
        self.one.run("CREATE TABLE awaited (id int PRIMARY KEY, v int) USING gcl; INSERT INTO awaited VALUES (1, 0)")
        commit = self.attach(self.one, "txn_committed")
        self.one.run("BEGIN; UPDATE awaited SET v = v + 1")
        self.two.send("UPDATE awaited SET v = v + 10 RETURNING v")
        self.assertTrue(self.two.blocked())
        self.one.send("COMMIT")
        commit.reached()
        self.assertEqual(["11"], self.two.result())
        self.assertEqual(["111"], self.three.run("UPDATE awaited SET v = v + 100 RETURNING v"))
        commit.go_on()
        self.one.result()
        self.assertEqual([["111"]] * 3, self.cluster.everywhere("SELECT v FROM awaited"))

    def test_a_hint_is_not_given_to_the_version_that_has_taken_its_place(self):
        """Two knows that a version was rolled back, and stands before it notes that in the page.  One removes the version, and puts
        another in its place; the page comes back to primary 2.  The third sees the row all the while."""
        self.one.run("CREATE TABLE hinted (id int, v int) USING gcl; INSERT INTO hinted VALUES (1, 0), (2, 0)")
        self.assertEqual("2", self.three.one("SELECT count(*) FROM hinted"))
        self.one.run("BEGIN; UPDATE hinted SET v = 7 WHERE id = 1; ROLLBACK")
        place = lambda: self.cluster.sql(3, "SELECT ctid FROM hinted WHERE id = 1")
        hint = self.attach(self.two, "heap_hint_ready")
        self.two.send("SELECT sum(v) FROM hinted")
        hint.reached()
        self.one.run("VACUUM hinted")
        self.one.run("UPDATE hinted SET v = 3 WHERE id = 1")
        self.assertEqual(["(0,3)"], [row[row.index("("):] for row in place()])
        other = self.cluster.session(2)
        other.run("UPDATE hinted SET v = 5 WHERE id = 2")
        hint.go_on()
        self.assertEqual(["0"], self.two.result())
        self.assertEqual([["1|3", "2|5"]] * 3, self.cluster.everywhere("SELECT * FROM hinted ORDER BY id"))

    def test_a_key_that_comes_between_probe_and_insert_is_seen(self):
        """One has found no such key, and stands before it latches the leaf: two puts the key in; or two does and three takes it out."""
        self.one.run("CREATE TABLE keyed (k int PRIMARY KEY, who int) USING gcl; INSERT INTO keyed SELECT i, 0 FROM generate_series(1, 9) i")
        for taken_out in (False, True):
            with self.subTest(taken_out=taken_out):
                self.one.run("DELETE FROM keyed WHERE k = 100")
                ready = self.attach(self.one, "blink_insert_ready")
                self.one.send("INSERT INTO keyed VALUES (100, 1)")
                ready.reached()
                self.two.run("INSERT INTO keyed VALUES (100, 2)")
                if taken_out:
                    self.three.run("DELETE FROM keyed WHERE k = 100")
                ready.go_on()
                if taken_out:
                    self.one.result()
                else:
                    self.fails("23505", self.one.result)
                self.assertEqual([["1" if taken_out else "2"]] * 3, self.cluster.everywhere("SELECT who FROM keyed WHERE k = 100"))

    def test_ddl_is_cancelled_when_one_of_the_others_has_done_it_and_one_is_at_it(self):
        """The record is sent; primary 2 has replayed it, primary 3 is about to say so; the coordinator is cancelled."""
        for statement in ("CREATE TABLE half (id int PRIMARY KEY) USING gcl", "BEGIN; CREATE TABLE half (id int PRIMARY KEY) USING gcl; COMMIT"):
            with self.subTest(statement):
                sent, replayed = self.attach(self.one, "ddl_statement_sent"), self.stops.attach(3, "ddl_replayed")
                self.one.send(statement)
                pid = sent.reached()
                replayed.reached()
                eventually(lambda: self.cluster.sql(2, "SELECT count(*) FROM gcl_stat_ddl WHERE answer = 'awaited'") == ["1"])
                self.cluster.sql(1, f"SELECT pg_cancel_backend({pid})")
                self.fails("57014", self.one.result)
                self.one.run("ROLLBACK")
                sent.left()
                replayed.left()
                self.assertEqual([["t"]] * 3, self.cluster.everywhere("SELECT to_regclass('half') IS NULL"))
                self.two.run("CREATE TABLE half (id int PRIMARY KEY) USING gcl; INSERT INTO half VALUES (1)")
                self.assertEqual([["1"]] * 3, self.cluster.everywhere("SELECT id FROM half"))
                self.two.run("DROP TABLE half")

    def test_a_coordinator_that_is_ended_when_all_are_prepared_leaves_all_alike(self):
        prepared = self.attach(self.one, "ddl_all_prepared")
        self.one.send("CREATE TABLE alike (id int) USING gcl")
        pid = prepared.reached()
        self.cluster.sql(1, f"SELECT pg_terminate_backend({pid})")
        told = True
        try:
            self.one.result()  # the commit may be done, and its client told, before the session ends
        except SqlError as error:
            self.assertEqual("57P01", error.state)
            told = False
        prepared.left()
        eventually(lambda: self.cluster.sql(1, f"SELECT count(*) FROM pg_stat_activity WHERE pid = {pid}") == ["0"])
        there = self.cluster.everywhere("SELECT to_regclass('alike') IS NOT NULL")
        self.assertEqual([there[0]] * 3, there)
        if told:
            self.assertEqual(["t"], there[0])
        self.three.run("CREATE TABLE IF NOT EXISTS alike (id int) USING gcl; INSERT INTO alike VALUES (1)")
        self.assertEqual([["1"]] * 3, self.cluster.everywhere("SELECT id FROM alike"))

    def test_what_is_decided_and_untold_is_waited_for(self):
        """The coordinator has committed and told nobody: others must not see the table half there, and none may do DDL before."""
        self.one.run("CREATE TABLE told (id int) USING gcl")
        untold = self.attach(self.one, "ddl_commit_untold")
        self.one.send("ALTER TABLE told ADD COLUMN v int DEFAULT 7")
        untold.reached()
        self.two.send("SELECT * FROM told")  # the worker there holds its lock
        self.three.send("ALTER TABLE told ADD COLUMN w int DEFAULT 8")
        self.assertTrue(self.two.blocked())
        self.assertTrue(self.three.blocked())
        untold.go_on()
        for session in (self.one, self.two, self.three):
            session.result()
        self.one.run("INSERT INTO told VALUES (1)")
        self.assertEqual([["1|7|8"]] * 3, self.cluster.everywhere("SELECT * FROM told"))


if __name__ == "__main__":
    unittest.main(verbosity=2)

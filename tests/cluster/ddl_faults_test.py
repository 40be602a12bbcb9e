"""DDL when something is in its way: locks, cancel, deadlock, errors on one primary, sessions and primaries that end."""
import statistics
import time
import unittest

from harness import Cluster, Session, SqlError, eventually

FINGERPRINT = "SELECT gcl_ddl_fingerprint(), count(*) FROM pg_class c JOIN pg_am a ON a.oid = c.relam WHERE a.amname = 'gcl'"


class DdlFaults(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster(primaries=3))

    def tearDown(self):
        self.cluster.close_sessions()  # what a test that failed left open would stand in the next one's way
        first, *others = self.cluster.everywhere(FINGERPRINT)
        for answer in others:
            self.assertEqual(first, answer, "the catalogs of shared tables differ")

    def test_error_on_one_primary_is_the_coordinators_and_undoes_all(self):
        self.cluster.sql(2, "CREATE TABLE in_the_way (a int) USING heap")
        with self.assertRaises(SqlError) as caught:
            self.cluster.sql(1, "CREATE TABLE in_the_way (a int) USING gcl")
        self.assertEqual("42P07", caught.exception.state)
        self.assertIn("primary 2", str(caught.exception))

    def test_error_on_one_primary_undoes_a_savepoint_only(self):
        self.cluster.sql(3, "CREATE TABLE in_the_way_too (a int) USING heap")
        self.cluster.sql(1, """DO $$ BEGIN
            CREATE TABLE around_a (a int PRIMARY KEY) USING gcl;
            BEGIN CREATE TABLE in_the_way_too (a int) USING gcl; EXCEPTION WHEN duplicate_table THEN NULL; END;
            CREATE TABLE around_b (a int PRIMARY KEY) USING gcl; END $$""")
        for answer in self.cluster.everywhere("SELECT count(*) FROM pg_class WHERE relname IN ('around_a', 'around_b')"):
            self.assertEqual(["2"], answer)

    def test_a_replay_that_makes_other_objects_is_refused(self):
        """What is copied from a local table differs: each object has to be the next one of its coordinator's."""
        for name, there, here, words in (
                ("less", "a int CHECK (a > 0)", "a int", "It made 5 objects here and 6 there; what is missing first is a row of pg_constraint"),
                ("more", "a int", "a int CHECK (a > 0)", "It made 5 objects there, and then a row of pg_constraint here."),
                ("another", "a int CHECK (a > 0)", "a int UNIQUE", "It made 6 objects there, and then an index here."),
                ("earlier", "a int NOT NULL", "a int GENERATED ALWAYS AS IDENTITY", "Object 1 was a row of pg_type with OID")):
            with self.subTest(name):
                self.cluster.sql(1, f"CREATE TABLE like_{name} ({there}) USING heap")
                self.cluster.sql(2, f"CREATE TABLE like_{name} ({here}) USING heap")
                self.cluster.sql(3, f"CREATE TABLE like_{name} ({there}) USING heap")
                with self.assertRaises(SqlError) as caught:
                    self.cluster.sql(1, f"CREATE TABLE made_{name} (LIKE like_{name} INCLUDING ALL, b text) USING gcl")
                self.assertEqual("XX001", caught.exception.state)
                for part in ("primary 2: the statement made other objects here than on the primary it came from", words):
                    self.assertIn(part, str(caught.exception))
                self.cluster.sql(1, f"CREATE TABLE made_{name} (LIKE like_{name}, b text) USING gcl")

    def test_an_error_on_one_primary_leaves_the_others_ready(self):
        # Primary 3 is told to stop while it may be anywhere in its replay of the statement.
        self.cluster.sql(2, "CREATE TABLE first_here (a int) USING heap")
        for i in range(40):
            with self.assertRaises(SqlError) as caught:
                self.cluster.sql(1, "CREATE TABLE first_here (a int PRIMARY KEY) USING gcl")
            self.assertEqual("42P07", caught.exception.state)
            self.cluster.sql(1, f"CREATE TABLE after_{i} (a int PRIMARY KEY) USING gcl")

    def test_an_error_in_a_savepoint_costs_the_savepoint_only(self):
        # As above; the coordinator goes on at once, so that a late order to stop would hit its next statement.
        self.cluster.sql(3, "CREATE TABLE in_this_way (a int) USING heap")
        for i in range(40):
            self.cluster.sql(1, f"""DO $$ BEGIN
                CREATE TABLE before_{i} (a int PRIMARY KEY) USING gcl;
                FOR i IN 1..4 LOOP
                    BEGIN CREATE TABLE in_this_way (a int PRIMARY KEY) USING gcl; EXCEPTION WHEN duplicate_table THEN NULL; END;
                END LOOP;
                CREATE TABLE behind_{i} (a int PRIMARY KEY) USING gcl; END $$""")

    def test_cancel_of_an_apply_worker_is_of_its_statement(self):
        self.cluster.sql(1, "CREATE TABLE slow_here (a int PRIMARY KEY) USING gcl")
        coordinator = self.cluster.session(1)
        coordinator.run("BEGIN; CREATE TABLE steady (a int) USING gcl; SAVEPOINT s")
        cancel = "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE backend_type = 'gcl ddl apply'"
        for _ in range(3):  # nothing to cancel
            self.assertEqual({"t"}, set(self.cluster.sql(2, cancel)))
            time.sleep(0.1)
        coordinator.run("CREATE TABLE steady_b (a int) USING gcl; SAVEPOINT t")
        reader = self.cluster.session(2)
        reader.run("BEGIN; SELECT * FROM slow_here")
        coordinator.send("TRUNCATE slow_here")
        eventually(lambda: self.cluster.sql(2, "SELECT count(*) FROM pg_locks WHERE NOT granted") == ["1"])
        self.cluster.sql(2, cancel)
        with self.assertRaises(SqlError) as caught:
            coordinator.result()
        self.assertEqual("57014", caught.exception.state)
        reader.run("COMMIT")
        coordinator.run("ROLLBACK TO t; TRUNCATE slow_here; COMMIT")

    def test_lock_held_on_another_primary_blocks_and_obeys_lock_timeout(self):
        self.cluster.sql(1, "CREATE TABLE busy (a int PRIMARY KEY) USING gcl")
        writer = self.cluster.session(2)
        writer.run("BEGIN; INSERT INTO busy VALUES (1)")
        with self.assertRaises(SqlError) as caught:
            self.cluster.sql(1, "SET lock_timeout = '200ms'; TRUNCATE busy")
        self.assertEqual("55P03", caught.exception.state)
        with self.assertRaises(SqlError) as caught:
            self.cluster.sql(3, "SET statement_timeout = '300ms'; TRUNCATE busy")
        self.assertEqual("57014", caught.exception.state)
        self.cluster.sql(3, "CREATE TABLE not_stuck (a int) USING gcl")
        coordinator = self.cluster.session(1)
        coordinator.send("TRUNCATE busy")
        self.assertTrue(coordinator.blocked())
        writer.run("COMMIT")
        coordinator.result(30)
        self.assertEqual([["0"]] * 3, self.cluster.everywhere("SELECT count(*) FROM busy"))

    def test_deadlock_through_the_ddl_lock_is_found(self):
        self.cluster.sql(1, "CREATE TABLE tangled (a int PRIMARY KEY) USING gcl")
        writer, coordinator = self.cluster.session(2), self.cluster.session(1)
        writer.run("BEGIN; INSERT INTO tangled VALUES (1)")
        coordinator.send("TRUNCATE tangled")
        eventually(lambda: self.cluster.sql(3, "SELECT node FROM gcl_ddl_lock") == ["1"])
        writer.send("CREATE TABLE tangled_b (a int) USING gcl; COMMIT")
        failed = 0
        for session in (coordinator, writer):
            try:
                session.result(30)
            except SqlError as error:
                self.assertEqual("40P01", error.state)
                failed += 1
        self.assertEqual(1, failed)
        if failed:
            writer.run("ROLLBACK")

    def test_the_lock_is_visible_everywhere_and_ends_with_its_session(self):
        coordinator = self.cluster.session(1)
        coordinator.run("BEGIN; CREATE TABLE lost (a int) USING gcl")
        self.assertEqual([["1"]] * 3, self.cluster.everywhere("SELECT node FROM gcl_ddl_lock"))
        with self.assertRaises(SqlError) as caught:
            self.cluster.sql(2, "SET lock_timeout = '200ms'; CREATE TABLE waits (a int) USING gcl")
        self.assertEqual("55P03", caught.exception.state)
        self.cluster.sql(1, "SELECT pg_terminate_backend(pid) FROM gcl_ddl_lock")
        self.cluster.sql(3, "CREATE TABLE after_lost (a int) USING gcl")
        self.assertEqual([["0"]] * 3, self.cluster.everywhere("SELECT count(*) FROM pg_class WHERE relname = 'lost'"))

    def test_an_apply_worker_that_ends_fails_the_transaction_not_the_cluster(self):
        coordinator = self.cluster.session(1)
        coordinator.run("BEGIN; CREATE TABLE orphan (a int) USING gcl")
        self.cluster.sql(2, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE backend_type = 'gcl ddl apply'")
        eventually(lambda: "gcl ddl apply" not in self.cluster.workers(2))
        with self.assertRaises(SqlError):
            coordinator.run("CREATE TABLE orphan_b (a int) USING gcl")
        coordinator.run("ROLLBACK")
        self.cluster.sql(1, "CREATE TABLE no_orphan (a int) USING gcl")

    def test_a_primary_that_stops_in_the_middle_catches_up(self):
        coordinator = self.cluster.session(1)
        coordinator.run("BEGIN; CREATE TABLE missed_a (a int PRIMARY KEY) USING gcl")
        self.cluster.stop(3)
        coordinator.run("CREATE TABLE missed_b (a int) USING gcl; SAVEPOINT s; TRUNCATE missed_b; RELEASE s; COMMIT")
        self.cluster.sql(2, "INSERT INTO missed_b VALUES (7)")
        self.cluster.start(3)
        self.assertEqual([["7"]] * 3, self.cluster.everywhere("SELECT a FROM missed_b"))

    def test_a_record_longer_than_the_mailbox(self):
        text = "x" * 300000
        self.cluster.sql(2, f"DO $$ BEGIN EXECUTE 'CREATE TABLE long (a int DEFAULT length(''{text}'')) USING gcl'; END $$")
        self.cluster.sql(3, "INSERT INTO long DEFAULT VALUES")
        self.assertEqual([["300000"]] * 3, self.cluster.everywhere("SELECT a FROM long"))

    def sleeps_of(self, pid):
        with open(f"/proc/{pid}/status", encoding="ascii") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("voluntary"))

    def test_news_is_told_not_asked_for(self):
        # A lost wake-up is made good by a heartbeat of 250 ms: each of these statements has three messages.
        self.cluster.sql(1, "CREATE TABLE told (a int) USING gcl")
        session = self.cluster.session(1)
        late = "SELECT value FROM gcl_stat_counters() WHERE layer = 'ddl' AND counter = 'answers found late'"
        before, medians = int(session.one(late)), []
        while not medians or (min(medians) >= 3 * 0.25 / 2 and len(medians) < 5):  # the machine may crawl for a while
            took = []
            for _ in range(30):
                began = time.monotonic()
                session.run("TRUNCATE told")
                took.append(time.monotonic() - began)
            medians.append(statistics.median(took))
        self.assertLess(min(medians), 3 * 0.25 / 2, medians)
        self.assertLess(int(session.one(late)) - before, 5)
        # They have the log to shorten first.
        eventually(lambda: self.cluster.sql(1, "SELECT DISTINCT kept_entries FROM gcl_stat_ddl_log_kept") == ["0"])
        launchers = [self.cluster.workers(k)["gcl ddl launcher"] for k in (1, 2, 3)]

        def a_second():
            """How often the most restless of them sleeps."""
            began, before = time.monotonic(), [self.sleeps_of(pid) for pid in launchers]
            time.sleep(3)
            slept = [self.sleeps_of(pid) - count for pid, count in zip(launchers, before)]
            return max(slept) / (time.monotonic() - began)

        eventually(lambda: a_second() < 8, 60)  # an idle launcher does not poll; the best of several attempts

    def on(self, database, k, text):
        session = Session(f"{self.cluster.dsn(k)} dbname={database}")
        try:
            return session.run(text)
        finally:
            session.close()

    def test_a_database_made_again_under_its_name_has_no_history(self):
        self.cluster.sql(2, "CREATE DATABASE again")
        self.on("again", 1, "CREATE EXTENSION gcl; CREATE TABLE first (a int) USING gcl; CREATE TABLE shared (a int) USING gcl")
        self.on("again", 3, "ALTER TABLE shared ADD COLUMN b text")
        self.cluster.stop(3)
        self.on("again", 2, "CREATE TABLE second (a int) USING gcl; DROP EXTENSION gcl CASCADE")
        # On each by itself, as an administrator may do it.
        for k in (1, 2):
            self.cluster.sql(k, "SET gcl.local_administration = on; DROP DATABASE again; CREATE DATABASE again")
        self.on("again", 2, "CREATE EXTENSION gcl; CREATE TABLE shared (z int PRIMARY KEY) USING gcl; INSERT INTO shared VALUES (7)")
        self.assertEqual(["7"], self.on("again", 1, "SELECT z FROM shared"))
        # Primary 3 still has the old database: it replays to that database's end, then the new one's history.
        self.cluster.start(3)
        for k in (1, 2, 3):
            self.assertEqual(["7"], self.on("again", k, "SELECT z FROM shared"))
            self.assertEqual(["shared"], self.on("again", k, "SELECT relname FROM pg_class WHERE relname IN ('first', 'second', 'shared')"))
        self.assertEqual(1, len({str(self.on("again", k, FINGERPRINT)) for k in (1, 2, 3)}))


if __name__ == "__main__":
    unittest.main(verbosity=2)

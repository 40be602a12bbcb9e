"""One key, three primaries: ON CONFLICT finds the other's row or waits for it, and deferred constraints hold at commit."""
import time
import unittest

from harness import Cluster, Load, SqlError, together

KEYS = 12
SECONDS = 5


class Unique(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster(primaries=3))
        cls.cluster.sql(1, "CREATE TABLE counter (k int PRIMARY KEY, n int NOT NULL) USING gcl")
        cls.cluster.sql(1, "CREATE TABLE first (k int PRIMARY KEY, who int NOT NULL) USING gcl")
        cls.cluster.sql(1, "CREATE TABLE late (id int PRIMARY KEY, v int, "
                           "CONSTRAINT late_v UNIQUE (v) DEFERRABLE INITIALLY DEFERRED) USING gcl")

    def setUp(self):
        self.one, self.two, self.three = (self.cluster.session(n) for n in (1, 2, 3))
        for session in (self.one, self.two, self.three):
            self.addCleanup(session.close)

    def everywhere(self, sql):
        answers = self.cluster.everywhere(sql)
        self.assertEqual(answers[0], answers[1])
        self.assertEqual(answers[0], answers[2])
        return answers[0]

    def race(self, text, enough, parties=6, before="SELECT", watch=None):
        """Runs `text` on all primaries at once, again and again, and watch(load) beside it; what each turn returns, added up:
        more than `enough`."""
        sums = [0] * parties
        load = Load(SECONDS, lambda: sum(sums) > enough)

        def work(party):
            session = self.cluster.session(1 + party % 3)
            turn = 0
            session.run(before)
            while load.goes_on():
                sums[party] += int(session.one(text.format(keys=KEYS, party=party, turn=turn), 60))
                turn += 1

        watchers = [lambda: watch(load)] if watch else []
        self.assertEqual([], together([*watchers, *(lambda party=party: work(party) for party in range(parties))], load))
        self.assertGreater(sum(sums), enough)
        return sum(sums)

    def test_upserts_count_every_one(self):
        self.one.run("DELETE FROM counter")
        # Each statement is a transaction of its own and counts several keys, in their order.
        made = self.race("""
            WITH u AS (INSERT INTO counter SELECT k, 1 FROM generate_series(1, {keys}) k WHERE random() < 0.4 ORDER BY k
                       ON CONFLICT (k) DO UPDATE SET n = counter.n + 1 RETURNING 1) SELECT count(*) FROM u""", enough=500)
        self.assertEqual([str(made)], self.everywhere("SELECT sum(n) FROM counter"))
        self.assertEqual([str(KEYS)], self.everywhere("SELECT count(*) FROM counter"))
        print(f"{made} upserts")

    def test_of_many_that_do_nothing_on_conflict_one_inserts(self):
        made = self.race("""
            WITH u AS (INSERT INTO first SELECT k, {party} FROM generate_series({turn} * 5, {turn} * 5 + 20) k ORDER BY k
                       ON CONFLICT DO NOTHING RETURNING 1) SELECT count(*) FROM u""", enough=200)
        self.assertEqual([f"{made}|{made}"], self.everywhere("SELECT count(*), count(DISTINCT k) FROM first"))
        print(f"{made} keys")

    def test_an_upsert_waits_for_an_insert_in_doubt(self):
        for how, after in (("COMMIT", "2"), ("ROLLBACK", "1")):
            self.one.run("DELETE FROM counter")
            self.one.run("BEGIN; INSERT INTO counter VALUES (1, 1)")
            self.two.send("INSERT INTO counter VALUES (1, 1) ON CONFLICT (k) DO UPDATE SET n = counter.n + 1 RETURNING n")
            self.assertTrue(self.two.blocked())
            self.one.run(how)
            self.assertEqual([after], self.two.result())

    def test_repeatable_read_does_not_update_what_it_cannot_see(self):
        self.one.run("DELETE FROM counter")
        self.two.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM counter")
        self.one.run("INSERT INTO counter VALUES (1, 1)")
        for action in ("DO UPDATE SET n = 7", "DO NOTHING"):
            self.two.run("SAVEPOINT s")
            with self.assertRaises(SqlError) as caught:
                self.two.run(f"INSERT INTO counter VALUES (1, 1) ON CONFLICT (k) {action}")
            self.assertEqual("40001", caught.exception.state)
            self.two.run("ROLLBACK TO s")
        self.two.run("ROLLBACK")

    def test_a_deferred_constraint_looks_at_commit(self):
        self.one.run("DELETE FROM late; INSERT INTO late SELECT i, i FROM generate_series(1, 4) i")
        self.two.run("BEGIN; UPDATE late SET v = 5 - v; COMMIT")
        self.assertEqual(["1|4", "2|3", "3|2", "4|1"], self.everywhere("SELECT id, v FROM late ORDER BY id"))
        self.two.run("BEGIN; INSERT INTO late VALUES (5, 1)")
        with self.assertRaises(SqlError) as caught:
            self.two.run("COMMIT")
        self.assertEqual("23505", caught.exception.state)
        # The other's row goes before the check.
        self.two.run("BEGIN; INSERT INTO late VALUES (5, 1)")
        self.three.run("DELETE FROM late WHERE v = 1")
        self.two.run("COMMIT")

    def test_a_deferred_constraint_waits_for_the_other_at_commit(self):
        for how, state in (("COMMIT", "23505"), ("ROLLBACK", None)):
            self.one.run("DELETE FROM late")
            self.two.run("BEGIN; INSERT INTO late VALUES (1, 7)")
            self.three.run("BEGIN; INSERT INTO late VALUES (2, 7)")  # does not wait
            self.three.send("COMMIT")
            self.assertTrue(self.three.blocked())
            self.two.run(how)
            if state is None:
                self.three.result()
            else:
                with self.assertRaises(SqlError) as caught:
                    self.three.result()
                self.assertEqual(state, caught.exception.state)
        self.assertEqual(["2|7"], self.everywhere("SELECT * FROM late"))

    def test_deferred_keys_are_unique_at_every_moment(self):
        self.one.run("DELETE FROM late; INSERT INTO late SELECT i, i FROM generate_series(1, {0}) i".format(KEYS))

        def watch(load):
            session = self.cluster.session(2)
            while load.goes_on():
                self.assertEqual([], session.run("SELECT v, count(*) FROM late GROUP BY v HAVING count(*) > 1"))
                time.sleep(0.02)

        # Two rows exchange their values, or one takes a value that may be another's: that fails at commit.
        text = """
            DO $$ DECLARE a int := 1 + (random() * {keys})::int; b int := 1 + (random() * {keys})::int; x int; y int;
            BEGIN
              SELECT v INTO x FROM late WHERE id = least(a, b) FOR UPDATE;
              SELECT v INTO y FROM late WHERE id = greatest(a, b) FOR UPDATE;
              IF random() < 0.7 THEN
                UPDATE late SET v = y WHERE id = least(a, b) AND y IS NOT NULL;
                UPDATE late SET v = x WHERE id = greatest(a, b) AND x IS NOT NULL;
              ELSE
                UPDATE late SET v = 1 + (random() * 2 * {keys})::int WHERE id = a;
              END IF;
              SET CONSTRAINTS late_v IMMEDIATE;
              INSERT INTO done_here VALUES (1);
            EXCEPTION WHEN unique_violation OR deadlock_detected THEN NULL;
            END $$;
            WITH d AS (DELETE FROM done_here RETURNING 1) SELECT count(*) FROM d"""
        made = self.race(text, enough=100, before="SET deadlock_timeout = '100ms'; CREATE TEMP TABLE done_here (i int) USING heap",
                         watch=watch)
        print(f"{made} exchanges")
        self.assertEqual([f"{KEYS}|{KEYS}"], self.everywhere("SELECT count(*), count(DISTINCT v) FROM late"))


if __name__ == "__main__":
    unittest.main(verbosity=2)

"""Foreign keys between gcl tables: parents and children change on different primaries, and no child is ever an orphan."""
import time
import unittest

from harness import Cluster, Load, SqlError, together

PARENTS = 30
SECONDS = 8


class ForeignKeyRaces(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster(primaries=3))

    def setUp(self):
        self.one, self.two, self.three = (self.cluster.session(n) for n in (1, 2, 3))
        for session in (self.one, self.two, self.three):
            self.addCleanup(session.close)

    def tables(self, actions="", parent="id int PRIMARY KEY, v int DEFAULT 0", key="p int"):
        self.one.run("DROP TABLE IF EXISTS child")
        self.one.run("DROP TABLE IF EXISTS parent")
        self.one.run(f"CREATE TABLE parent ({parent}) USING gcl")
        self.one.run(f"CREATE TABLE child (id int PRIMARY KEY, {key} REFERENCES parent {actions}) USING gcl")
        self.one.run("INSERT INTO parent SELECT generate_series(1, 5)")

    def fails(self, state, session, sql):
        with self.assertRaises(SqlError) as caught:
            session.run(sql)
        self.assertEqual(state, caught.exception.state)

    def children(self):
        answers = [session.run("SELECT id, p FROM child ORDER BY id") for session in (self.one, self.two, self.three)]
        self.assertEqual(answers[0], answers[1])
        self.assertEqual(answers[0], answers[2])
        return answers[0]

    def test_a_child_needs_a_parent_and_keeps_it(self):
        self.tables()
        self.two.run("INSERT INTO child VALUES (1, 1), (2, NULL)")
        self.fails("23503", self.three, "INSERT INTO child VALUES (3, 99)")
        self.fails("23503", self.three, "UPDATE child SET p = 99 WHERE id = 1")
        self.fails("23503", self.three, "DELETE FROM parent WHERE id = 1")
        self.fails("23503", self.one, "UPDATE parent SET id = 11 WHERE id = 1")
        self.three.run("UPDATE parent SET v = 7 WHERE id = 1")
        self.three.run("DELETE FROM parent WHERE id = 2")
        self.two.run("UPDATE child SET p = 3 WHERE id = 1")
        self.one.run("DELETE FROM parent WHERE id = 1")
        self.assertEqual(["1|3", "2|"], self.children())

    def test_actions(self):
        for actions, after in (("ON DELETE CASCADE ON UPDATE CASCADE", ["2|20", "3|3"]),
                               ("ON DELETE SET NULL ON UPDATE SET NULL", ["1|", "2|", "3|3"]),
                               ("ON DELETE SET DEFAULT ON UPDATE SET DEFAULT", ["1|5", "2|5", "3|3"])):
            with self.subTest(actions=actions):
                self.tables(actions, key="p int DEFAULT 5")
                self.two.run("INSERT INTO child SELECT i, i FROM generate_series(1, 3) i")
                self.three.run("DELETE FROM parent WHERE id = 1")
                self.three.run("UPDATE parent SET id = id * 10 WHERE id = 2")
                self.assertEqual(after, self.children())

    def test_set_default_needs_the_default_parent(self):
        self.tables("ON DELETE SET DEFAULT", key="p int DEFAULT 99")
        self.two.run("INSERT INTO child VALUES (1, 1)")
        self.fails("23503", self.three, "DELETE FROM parent WHERE id = 1")

    def test_no_action_takes_another_parent_with_the_key_and_restrict_does_not(self):
        again = "WITH gone AS (DELETE FROM parent WHERE id = 1 RETURNING id) INSERT INTO parent SELECT id, 8 FROM gone"
        for actions, works in (("ON DELETE RESTRICT", False), ("", True)):
            with self.subTest(actions=actions):
                self.tables(actions)
                self.two.run("INSERT INTO child VALUES (1, 1)")
                if works:
                    self.three.run(again)
                else:
                    self.fails("23503", self.three, again)
                self.assertEqual("8" if works else "0", self.two.one("SELECT v FROM parent WHERE id = 1"))
                self.assertEqual(["1|1"], self.children())

    def test_deferred_checks_look_at_the_end(self):
        self.tables("DEFERRABLE INITIALLY DEFERRED")
        self.two.run("BEGIN; INSERT INTO child VALUES (1, 99)")
        self.fails("23503", self.two, "COMMIT")
        self.two.run("BEGIN; INSERT INTO child VALUES (1, 99)")
        self.three.run("INSERT INTO parent VALUES (99)")  # committed before the check
        self.two.run("COMMIT")
        self.one.run("BEGIN; DELETE FROM parent WHERE id = 99; UPDATE child SET p = 2; COMMIT")  # in the wrong order
        self.two.run("UPDATE child SET p = 3")
        self.three.run("BEGIN; DELETE FROM parent WHERE id = 2")
        self.two.send("UPDATE child SET p = 1 WHERE id = 1")  # does not touch parent 2
        self.two.result()
        self.three.run("COMMIT")
        self.assertEqual(["1|1"], self.children())

    def test_a_child_waits_for_a_parent_in_doubt(self):
        self.tables()
        self.one.run("BEGIN; DELETE FROM parent WHERE id = 1")
        self.two.send("INSERT INTO child VALUES (1, 1)")
        self.assertTrue(self.two.blocked())
        self.one.run("COMMIT")
        with self.assertRaises(SqlError) as caught:
            self.two.result()
        self.assertEqual("23503", caught.exception.state)
        self.one.run("BEGIN; DELETE FROM parent WHERE id = 2")
        self.two.send("INSERT INTO child VALUES (1, 2)")
        self.assertTrue(self.two.blocked())
        self.one.run("ROLLBACK")
        self.two.result()

    def test_a_parent_waits_for_children_in_doubt(self):
        self.tables()
        self.two.run("BEGIN; INSERT INTO child VALUES (1, 1)")
        self.three.run("BEGIN; INSERT INTO child VALUES (2, 1)")
        # Other columns may change meanwhile, and the lock goes along.
        self.one.run("UPDATE parent SET v = v + 1 WHERE id = 1")
        self.one.send("DELETE FROM parent WHERE id = 1")
        self.assertTrue(self.one.blocked())
        self.two.run("ROLLBACK")
        self.assertTrue(self.one.blocked())
        self.three.run("COMMIT")
        with self.assertRaises(SqlError) as caught:
            self.one.result()
        self.assertEqual("23503", caught.exception.state)

    def test_repeatable_read_cascades_only_to_what_it_sees(self):
        self.tables("ON DELETE CASCADE")
        self.one.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM child")
        self.two.run("INSERT INTO child VALUES (1, 1)")
        self.fails("40001", self.one, "DELETE FROM parent WHERE id = 1")
        self.one.run("ROLLBACK")
        self.assertEqual(["1|1"], self.children())
        self.one.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM child; DELETE FROM parent WHERE id = 1")
        self.one.run("COMMIT")
        self.assertEqual([], self.children())

    def test_repeatable_read_refuses_a_parent_whose_child_it_does_not_see(self):
        self.tables()
        self.one.run("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM child")
        self.two.run("INSERT INTO child VALUES (1, 1)")
        self.fails("23503", self.one, "DELETE FROM parent WHERE id = 1")
        self.one.run("ROLLBACK")

    def test_a_table_that_refers_to_itself(self):
        self.one.run("CREATE TABLE tree (id int PRIMARY KEY, up int REFERENCES tree ON DELETE CASCADE) USING gcl")
        self.two.run("INSERT INTO tree VALUES (1, NULL), (2, 1), (3, 2), (4, 3), (5, 5)")
        self.three.run("DELETE FROM tree WHERE id = 2")
        self.assertEqual(["1|", "5|5"], self.one.run("SELECT * FROM tree ORDER BY id"))
        self.three.run("DELETE FROM tree WHERE id = 5")
        self.one.run("DROP TABLE tree")

    def race(self, actions, child_turn, parent_turn):
        """Children on two primaries and parents on the third; returns how many turns each made."""
        self.tables(actions)
        self.one.run(f"TRUNCATE parent, child; INSERT INTO parent SELECT generate_series(1, {PARENTS})")
        turns = {}

        def work(primary, number, turn):
            session = self.cluster.session(primary)
            while load.goes_on():
                try:
                    session.run(turn(number, turns[number]), 60)
                except SqlError as error:
                    if error.state not in ("23503", "40P01", "40001", "23505"):
                        raise
                turns[number] += 1

        def watch():
            looks = self.cluster.session(1)
            while load.goes_on():
                self.assertEqual("0", looks.one(orphans))
                time.sleep(0.05)

        parties = [(2, 1, child_turn), (3, 2, child_turn), (1, 3, parent_turn), (2, 4, parent_turn)]
        turns.update((number, 0) for _, number, _ in parties)
        load = Load(SECONDS, lambda: min(turns.values()) > 5)
        orphans = "SELECT count(*) FROM child c WHERE p IS NOT NULL AND NOT EXISTS (SELECT FROM parent q WHERE q.id = c.p)"
        self.assertEqual([], together([watch, *(lambda party=party: work(*party) for party in parties)], load))
        self.assertGreater(min(turns.values()), 5)
        for answer in self.cluster.everywhere(orphans):
            self.assertEqual(["0"], answer)
        return turns

    # Each turn is many small transactions: psql's round trips would be the slowest part otherwise.
    CHILD = """
        DO $$ DECLARE i int; k int; BEGIN
          FOR i IN 1..20 LOOP
            k := 1 + (random() * {parents})::int;
            BEGIN
              INSERT INTO child VALUES ({party} * 100000000 + {turn} * 100 + i, k);
              IF random() < 0.3 THEN UPDATE child SET p = 1 + (random() * {parents})::int WHERE p = k; END IF;
            EXCEPTION WHEN foreign_key_violation OR deadlock_detected THEN NULL;
            END;
            COMMIT;
          END LOOP; END $$"""
    PARENT = """
        DO $$ DECLARE i int; k int; BEGIN
          FOR i IN 1..20 LOOP
            k := 1 + (random() * {parents})::int;
            BEGIN
              IF random() < 0.4 THEN UPDATE parent SET v = v + 1 WHERE id = k;
              ELSE DELETE FROM parent WHERE id = k; END IF;
              IF random() < 0.2 THEN DELETE FROM child WHERE p = k; END IF;
            EXCEPTION WHEN foreign_key_violation OR deadlock_detected THEN NULL;
            END;
            COMMIT;
            INSERT INTO parent VALUES (1 + (random() * {parents})::int) ON CONFLICT DO NOTHING;
            COMMIT;
          END LOOP; END $$"""

    def turn(self, text):
        return lambda party, count: text.format(parents=PARENTS, party=party, turn=count)

    def test_thousands_of_racing_children_and_parents_leave_no_orphan(self):
        turns = self.race("", self.turn(self.CHILD), self.turn(self.PARENT))
        print(f"turns of 20: {turns}")

    def test_cascades_race_with_children_and_leave_no_orphan(self):
        turns = self.race("ON DELETE CASCADE", self.turn(self.CHILD), self.turn(self.PARENT))
        print(f"turns of 20: {turns}")


if __name__ == "__main__":
    unittest.main(verbosity=2)

"""Foreign keys between gcl tables hold whichever primaries the rows at their ends are changed on."""
import unittest

from harness import Cluster, SqlError


class ForeignKeys(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster(primaries=3))
        cls.cluster.sql(1, """
            CREATE TABLE parent (id int PRIMARY KEY, v int) USING gcl;
            CREATE TABLE plain (id int PRIMARY KEY, p int REFERENCES parent) USING gcl;
            CREATE TABLE cascades (id int PRIMARY KEY, p int REFERENCES parent ON DELETE CASCADE ON UPDATE CASCADE) USING gcl;
            CREATE TABLE nulls (id int PRIMARY KEY, p int REFERENCES parent ON DELETE SET NULL ON UPDATE SET DEFAULT) USING gcl;
            CREATE TABLE late (id int PRIMARY KEY, p int REFERENCES parent DEFERRABLE INITIALLY DEFERRED) USING gcl;
            INSERT INTO parent SELECT i, i FROM generate_series(1, 100) i""")

    def refused(self, state, k, text):
        with self.assertRaises(SqlError) as caught:
            self.cluster.sql(k, text)
        self.assertEqual(state, caught.exception.state)

    def everywhere(self, expected, query):
        self.assertEqual([expected] * 3, self.cluster.everywhere(query))

    def test_a_row_without_its_parent_is_refused_everywhere(self):
        for k in (1, 2, 3):
            self.refused("23503", k, "INSERT INTO plain VALUES (1000, 1000)")
            self.cluster.sql(k, f"INSERT INTO plain VALUES ({k}, {k})")
            self.refused("23503", k % 3 + 1, f"UPDATE plain SET p = 1000 WHERE id = {k}")
            self.refused("23503", k % 3 + 1, f"DELETE FROM parent WHERE id = {k}")
            self.refused("23503", k % 3 + 1, f"UPDATE parent SET id = 2000 WHERE id = {k}")

    def test_a_parent_is_kept_while_a_child_is_being_made(self):
        child, parent = self.cluster.session(2), self.cluster.session(3)
        child.run("BEGIN; INSERT INTO plain VALUES (10, 10)")
        parent.run("UPDATE parent SET v = v + 1 WHERE id = 10")  # not its key
        parent.send("DELETE FROM parent WHERE id = 10")
        self.assertTrue(parent.blocked())
        child.run("COMMIT")
        with self.assertRaises(SqlError) as caught:
            parent.result()
        self.assertEqual("23503", caught.exception.state)
        self.everywhere(["11"], "SELECT v FROM parent WHERE id = 10")

    def test_a_child_waits_for_its_parent_that_is_going(self):
        parent, child = self.cluster.session(1), self.cluster.session(2)
        parent.run("BEGIN; DELETE FROM parent WHERE id = 20")
        child.send("INSERT INTO plain VALUES (20, 20)")
        self.assertTrue(child.blocked())
        parent.run("COMMIT")
        with self.assertRaises(SqlError) as caught:
            child.result()
        self.assertEqual("23503", caught.exception.state)

    def state_of(self, session, text):
        try:
            session.run(text)
        except SqlError as error:
            session.run("ROLLBACK")
            return error.state
        return None

    def test_a_parent_committed_just_now_counts_as_on_one_server(self):
        self.cluster.sql(1, "CREATE TABLE heap_parent (id int PRIMARY KEY) USING heap; CREATE TABLE heap_child (p int REFERENCES heap_parent) USING heap;"
                            "CREATE TABLE gcl_parent (id int PRIMARY KEY) USING gcl; CREATE TABLE gcl_child (p int REFERENCES gcl_parent) USING gcl")
        outcomes = {}
        for kind, other in (("heap", 1), ("gcl", 3)):
            for i, level in enumerate(("READ COMMITTED", "REPEATABLE READ")):
                child = self.cluster.session(other)
                child.run(f"BEGIN ISOLATION LEVEL {level}; SELECT count(*) FROM {kind}_parent")
                self.cluster.sql(1, f"INSERT INTO {kind}_parent VALUES ({i})")
                outcomes[kind, level] = self.state_of(child, f"INSERT INTO {kind}_child VALUES ({i}); COMMIT")
                child.run(f"BEGIN ISOLATION LEVEL {level}; SELECT count(*) FROM {kind}_parent")
                self.cluster.sql(1, f"DELETE FROM {kind}_parent WHERE id = {i} AND NOT EXISTS (SELECT FROM {kind}_child WHERE p = {i})")
                outcomes[kind, level, "gone"] = self.state_of(child, f"INSERT INTO {kind}_child VALUES ({i}); COMMIT")
        self.assertIsNone(outcomes["gcl", "READ COMMITTED"])
        for (kind, *what), outcome in outcomes.items():
            self.assertEqual(outcomes["heap", *what], outcome, f"{kind} {what}")

    def test_actions_reach_children_made_elsewhere(self):
        self.cluster.sql(2, "INSERT INTO cascades SELECT i, i FROM generate_series(30, 39) i; INSERT INTO nulls SELECT i, i FROM generate_series(30, 39) i")
        self.cluster.sql(3, "DELETE FROM parent WHERE id BETWEEN 30 AND 34")
        self.everywhere(["5|35"], "SELECT count(*), min(p) FROM cascades WHERE id BETWEEN 30 AND 39")
        self.everywhere(["10|5"], "SELECT count(*), count(p) FROM nulls WHERE id BETWEEN 30 AND 39")
        self.cluster.sql(1, "UPDATE parent SET id = id + 3000 WHERE id BETWEEN 35 AND 37")
        self.everywhere(["3035"], "SELECT p FROM cascades WHERE id = 35")
        self.everywhere(["2"], "SELECT count(p) FROM nulls WHERE id BETWEEN 30 AND 39")

    def test_a_deferred_one_is_checked_at_commit(self):
        self.refused("23503", 1, "BEGIN; INSERT INTO late VALUES (1, 1001); COMMIT")
        self.cluster.sql(2, "BEGIN; INSERT INTO late VALUES (2, 1002); INSERT INTO parent VALUES (1002, 0); COMMIT")
        self.refused("23503", 3, "BEGIN; DELETE FROM parent WHERE id = 1002; COMMIT")
        self.everywhere(["1002"], "SELECT p FROM late")

    def test_none_leads_from_a_gcl_table_to_a_local_one_or_back(self):
        self.cluster.sql(2, "CREATE TABLE local (id int PRIMARY KEY) USING heap")
        self.refused("0A000", 2, "CREATE TABLE f (id int REFERENCES local) USING gcl")
        self.refused("0A000", 2, "CREATE TABLE f (id int REFERENCES parent) USING heap")
        self.refused("0A000", 2, "ALTER TABLE local ADD FOREIGN KEY (id) REFERENCES parent")
        self.refused("0A000", 2, "ALTER TABLE plain ADD FOREIGN KEY (id) REFERENCES local")
        self.refused("0A000", 2, "ALTER TABLE plain ADD COLUMN l int REFERENCES local")

    def test_adding_one_in_repeatable_read_checks_what_is_there_now(self):
        self.cluster.sql(1, "CREATE TABLE old_p (id int PRIMARY KEY) USING gcl; CREATE TABLE old_c (p int) USING gcl;"
                            "INSERT INTO old_p VALUES (1); INSERT INTO old_c VALUES (1)")
        for first in ("SELECT count(*) FROM old_c", "DO 'BEGIN PERFORM count(*) FROM old_c; END'", "SELECT 1"):
            with self.subTest(first):
                session = self.cluster.session(1)
                session.run(f"BEGIN ISOLATION LEVEL REPEATABLE READ; {first}")
                self.cluster.sql(2, "INSERT INTO old_c VALUES (999)")
                with self.assertRaises(SqlError) as caught:
                    session.run("ALTER TABLE old_c ADD FOREIGN KEY (p) REFERENCES old_p")
                self.assertEqual("23503", caught.exception.state)
                session.run("ROLLBACK; BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM old_c")
                self.cluster.sql(2, "DELETE FROM old_c WHERE p = 999")
                session.run("ALTER TABLE old_c ADD CONSTRAINT f FOREIGN KEY (p) REFERENCES old_p")
                # What the transaction itself reads is still of its time.
                self.assertEqual(["2"], session.run("SELECT count(*) FROM old_c"))
                session.run("ROLLBACK")
                session.close()

    def test_adding_one_waits_for_writers_elsewhere_and_checks_their_rows(self):
        self.cluster.sql(1, "CREATE TABLE unchecked (id int PRIMARY KEY, p int) USING gcl; INSERT INTO unchecked VALUES (1, 50)")
        writer, coordinator = self.cluster.session(2), self.cluster.session(3)
        writer.run("BEGIN; INSERT INTO unchecked VALUES (2, 9999)")
        coordinator.send("ALTER TABLE unchecked ADD FOREIGN KEY (p) REFERENCES parent")
        self.assertTrue(coordinator.blocked())
        writer.run("COMMIT")
        with self.assertRaises(SqlError) as caught:
            coordinator.result()
        self.assertEqual("23503", caught.exception.state)
        self.cluster.sql(1, "DELETE FROM unchecked WHERE id = 2")
        coordinator.run("ALTER TABLE unchecked ADD FOREIGN KEY (p) REFERENCES parent")
        for k in (1, 2, 3):
            self.refused("23503", k, "INSERT INTO unchecked VALUES (3, 9999)")


if __name__ == "__main__":
    unittest.main(verbosity=2)

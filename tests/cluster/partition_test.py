"""A row whose partition key is updated goes on in another table; a session that waited for it hears that, as in PostgreSQL."""
import re
import unittest

from harness import GO_ON, STAND_STILL, Cluster, SqlError, eventually, holds_back


PARTITIONED = """SET default_table_access_method = gcl;
CREATE TABLE p (id int, k int, v int) PARTITION BY LIST (k);
CREATE TABLE p1 PARTITION OF p FOR VALUES IN (1);
CREATE TABLE p2 PARTITION OF p FOR VALUES IN (2)"""


class Partition(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster(primaries=2, settings=("autovacuum=off",)))
        cls.cluster.sql(1, PARTITIONED)
        cls.cluster.sql(1, STAND_STILL)

    def setUp(self):
        self.mover, self.other = self.cluster.session(1), self.cluster.session(2)
        self.addCleanup(self.other.close)
        self.addCleanup(self.mover.close)
        self.mover.run("DELETE FROM p")
        self.mover.run("INSERT INTO p VALUES (1, 1, 10)")

    def while_moved(self, statement, end="COMMIT"):
        self.mover.run("BEGIN")
        self.mover.run("UPDATE p SET k = 2 WHERE id = 1")
        self.other.send(statement)
        self.assertTrue(self.other.blocked())
        self.mover.run(end)
        return self.other.result(5)

    def test_waiters_for_a_moved_row_hear_so(self):
        for statement in ("UPDATE p SET v = v + 1 WHERE id = 1", "DELETE FROM p WHERE id = 1",
                          "SELECT * FROM p WHERE id = 1 FOR UPDATE", "UPDATE p1 SET v = v + 1 WHERE id = 1",
                          "UPDATE p SET k = 2, v = v + 1 WHERE id = 1"):
            with self.subTest(statement):
                self.mover.run("DELETE FROM p")
                self.mover.run("INSERT INTO p VALUES (1, 1, 10)")
                with self.assertRaises(SqlError) as caught:
                    self.while_moved(statement)
                self.assertEqual("40001", caught.exception.state)
                self.assertIn("moved to another partition", str(caught.exception))
                self.assertEqual([["1|2|10"]] * 2, self.cluster.everywhere("SELECT * FROM p"))

    def test_a_move_that_is_rolled_back_never_was(self):
        self.assertEqual(["11"], self.while_moved("UPDATE p SET v = v + 1 WHERE id = 1 RETURNING v", "ROLLBACK"))
        self.assertEqual(["1|2|11"], self.other.run("UPDATE p SET k = 2 WHERE id = 1 RETURNING *"))

    def test_a_row_routed_to_a_partition_counts_though_the_query_names_only_the_parent(self):
        self.other.run("CREATE TABLE IF NOT EXISTS elsewhere (v int) USING gcl")
        mover = self.mover.pid()
        self.mover.send("INSERT INTO p SELECT i, 1, CASE i WHEN 2 THEN stand_still() ELSE 0 END FROM generate_series(1, 2) i")
        self.mover.waits_for("PgSleep")
        self.other.run("INSERT INTO elsewhere SELECT 1 FROM generate_series(1, 50); DELETE FROM elsewhere")
        holds_back(self.other, 1, mover)
        removed = re.compile(r"(\d+) removed")
        self.assertEqual(["0"], removed.findall(" ".join(self.other.run("VACUUM VERBOSE elsewhere"))))
        gate = self.cluster.session(1)
        self.addCleanup(gate.close)
        gate.run(GO_ON)
        self.mover.result()
        eventually(lambda: removed.findall(" ".join(self.other.run("VACUUM VERBOSE elsewhere"))) == ["50"])

    def test_a_deleted_row_is_not_a_moved_one(self):
        self.mover.run("BEGIN")
        self.mover.run("DELETE FROM p WHERE id = 1")
        self.other.send("UPDATE p SET v = v + 1 WHERE id = 1 RETURNING v")
        self.assertTrue(self.other.blocked())
        self.mover.run("COMMIT")
        self.assertEqual([], self.other.result(5))

    def test_repeatable_read_cannot_change_it_either(self):
        self.other.run("BEGIN ISOLATION LEVEL REPEATABLE READ")
        self.other.run("SELECT * FROM p")
        with self.assertRaises(SqlError) as caught:
            self.while_moved("UPDATE p SET v = v + 1 WHERE id = 1")
        self.assertEqual("40001", caught.exception.state)
        self.other.run("ROLLBACK")


if __name__ == "__main__":
    unittest.main(verbosity=2)

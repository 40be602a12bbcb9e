"""What a client may ask of a table in plain SQL, where the answer hangs on how rows and snapshots are handed to PostgreSQL."""
import unittest

from harness import Cluster, SqlError


class Sql(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster(primaries=2, settings=("max_prepared_transactions=4",)))
        cls.cluster.sql(1, "CREATE TABLE t (id int PRIMARY KEY, v text) USING gcl")
        cls.cluster.sql(1, "INSERT INTO t SELECT i, CASE WHEN i % 3 > 0 THEN 'v' || i END FROM generate_series(1, 9) i")

    def setUp(self):
        self.one, self.two = self.cluster.session(1), self.cluster.session(2)
        self.addCleanup(self.two.close)
        self.addCleanup(self.one.close)

    def refused(self, state, session, sql):
        with self.assertRaises(SqlError) as caught:
            session.run(sql)
        self.assertEqual(state, caught.exception.state)

    def test_a_scroll_cursor_comes_to_a_row_again(self):
        rows = [f"{i}|{f'v{i}' if i % 3 else ''}" for i in range(1, 10)]
        self.one.run("BEGIN")
        self.one.run("DECLARE c SCROLL CURSOR FOR SELECT * FROM t")
        self.assertEqual(rows, self.one.run("FETCH ALL FROM c"))
        self.assertEqual(rows[::-1], self.one.run("FETCH BACKWARD ALL FROM c"))
        self.assertEqual(rows[:4], self.one.run("FETCH 4 FROM c"))
        self.assertEqual(rows[3:4], self.one.run("FETCH RELATIVE 0 FROM c"))
        self.assertEqual(rows[2:3], self.one.run("FETCH PRIOR FROM c"))
        self.one.run("COMMIT")

    def test_on_conflict_does_not_change_a_row_twice(self):
        self.one.run("CREATE TABLE twice (id int PRIMARY KEY, v text) USING gcl")
        self.refused("21000", self.one,
                     "INSERT INTO twice VALUES (1, 'a'), (1, 'b') ON CONFLICT (id) DO UPDATE SET v = excluded.v")
        self.one.run("INSERT INTO twice VALUES (1, 'a') ON CONFLICT (id) DO UPDATE SET v = excluded.v")
        self.one.run("INSERT INTO twice VALUES (1, 'b') ON CONFLICT (id) DO UPDATE SET v = excluded.v")
        self.assertEqual(["1|b"], self.two.run("SELECT * FROM twice"))

    def test_repeatable_read_sees_the_time_of_its_first_statement(self):
        self.one.run("CREATE TABLE early (v int) USING gcl")
        self.one.run("INSERT INTO early VALUES (1)")
        self.two.run("BEGIN ISOLATION LEVEL REPEATABLE READ")
        self.two.run("SELECT 1")
        self.one.run("UPDATE early SET v = 2")
        self.assertEqual("1", self.two.one("SELECT v FROM early"))
        self.two.run("COMMIT")
        self.assertEqual("2", self.two.one("SELECT v FROM early"))

    def test_a_plan_made_right_after_another_primarys_load_knows_of_it(self):
        self.one.run("CREATE TABLE grown (id int PRIMARY KEY, v text) USING gcl")
        self.one.run("INSERT INTO grown VALUES (0, 'first')")
        self.two.run("ANALYZE grown")
        self.assertIn("Seq Scan", self.two.run("EXPLAIN SELECT * FROM grown WHERE id = 5")[0])
        self.one.run("INSERT INTO grown SELECT i, repeat('v', 40) FROM generate_series(1, 10000) i")
        self.assertIn("Index Scan", self.two.run("EXPLAIN SELECT * FROM grown WHERE id = 5")[0])

    def test_a_page_of_rows_is_looked_up_by_its_key_and_some_rows_are_read(self):
        """A table that does not grow by updates has a hundred rows on a page: to read them takes longer than to look one up."""
        self.one.run("CREATE TABLE tellers (id int PRIMARY KEY, v int) USING gcl; INSERT INTO tellers SELECT i, 0 FROM generate_series(1, 100) i;"
                     "CREATE TABLE branches (id int PRIMARY KEY, v int) USING gcl; INSERT INTO branches SELECT i, 0 FROM generate_series(1, 10) i;"
                     "ANALYZE tellers, branches")
        self.assertIn("Index Scan", self.one.run("EXPLAIN SELECT * FROM tellers WHERE id = 5")[0])
        self.assertIn("Seq Scan", self.one.run("EXPLAIN SELECT * FROM branches WHERE id = 5")[0])

    def test_read_committed_sees_the_time_of_each_statement(self):
        self.one.run("CREATE TABLE late (v int) USING gcl")
        self.one.run("INSERT INTO late VALUES (1)")
        self.two.run("BEGIN")
        self.assertEqual("1", self.two.one("SELECT v FROM late"))
        self.one.run("UPDATE late SET v = 2")
        self.assertEqual("2", self.two.one("SELECT v FROM late"))
        self.two.run("COMMIT")

    def test_ddl_cannot_be_prepared(self):
        for statement in ("DROP TABLE kept", "TRUNCATE kept", "CREATE TABLE more (v int) USING gcl"):
            self.one.run("CREATE TABLE IF NOT EXISTS kept (v int) USING gcl")
            self.one.run("BEGIN")
            self.one.run(statement)
            self.refused("0A000", self.one, "PREPARE TRANSACTION 'x'")
            self.one.run("ROLLBACK")
        self.assertEqual([[], []], self.cluster.everywhere("SELECT * FROM kept"))
        self.one.run("BEGIN")
        self.one.run("SELECT count(*) FROM kept")
        self.one.run("PREPARE TRANSACTION 'read only'")
        self.one.run("COMMIT PREPARED 'read only'")

    def test_sizes_are_those_of_the_pool(self):
        self.one.run("CREATE TABLE sized (id int PRIMARY KEY, v text) USING gcl")
        self.one.run("INSERT INTO sized SELECT i, repeat('x', 200) FROM generate_series(1, 20000) i")
        block, rows = 8192, 20000
        for session in (self.one, self.two):
            table, index = (int(session.one(f"SELECT pg_relation_size('{name}')")) for name in ("sized", "sized_pkey"))
            self.assertTrue(0.9 < table / (rows * 245) < 1.2, table)
            self.assertTrue(0.9 < index / (rows * 22) < 2, index)
            self.assertEqual(0, table % block + index % block)
            toast = int(session.one("SELECT pg_total_relation_size(reltoastrelid) FROM pg_class WHERE oid = 'sized'::regclass"))
            self.assertTrue(0 < toast <= 4 * block, toast)
            self.assertEqual(f"{table}|0|{table + toast}|{index}|{table + toast + index}", session.one(
                """SELECT pg_relation_size('sized', 'main'), pg_relation_size('sized', 'fsm'), pg_table_size('sized'),
                          pg_indexes_size('sized'), pg_total_relation_size('sized')"""))
            listed = next(row for row in session.run("\\dt+ sized\n") if "sized" in row)
            self.assertIn(f"{(table + toast) // 1024} kB", listed)

    def test_sizes_of_other_relations_are_the_server_s(self):
        self.one.run("CREATE TABLE plain (id int PRIMARY KEY, v text) USING heap")
        self.one.run("INSERT INTO plain SELECT i, 'x' FROM generate_series(1, 1000) i")
        self.assertEqual("t|t|t", self.one.one(
            """SELECT pg_relation_size('plain') = (pg_stat_file(pg_relation_filepath('plain'))).size,
                      pg_total_relation_size('plain') = pg_table_size('plain') + pg_indexes_size('plain'),
                      pg_relation_size('plain_pkey') = (pg_stat_file(pg_relation_filepath('plain_pkey'))).size"""))
        self.assertEqual(["t"], self.one.run("SELECT pg_relation_size(0) IS NULL"))
        self.refused("22023", self.one, "SELECT pg_relation_size('t', 'nonsense')")


if __name__ == "__main__":
    unittest.main(verbosity=2)

"""Databases of a cluster: those without the extension, and what the default access method gcl means in them."""
import unittest

from harness import Cluster, Session, SqlError

GCL = "options='-c default_table_access_method=gcl'"


class Databases(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster(primaries=3))

    def on(self, k, database, text, *options):
        session = Session(" ".join((self.cluster.dsn(k), f"dbname={database}", *options)))
        try:
            return session.run(text)
        finally:
            session.close()

    def refused(self, state, says, k, database, text, *options):
        session = Session(" ".join((self.cluster.dsn(k), f"dbname={database}", *options)))
        try:
            with self.assertRaises(SqlError) as caught:
                session.run(text)
            self.assertEqual(state, caught.exception.state)
            self.assertIn(says, "\n".join(session.collected))
        finally:
            session.close()

    def test_the_default_method_in_a_database_without_the_extension(self):
        self.cluster.everywhere("CREATE DATABASE bare")
        for text in ("CREATE TABLE t (a int)", "CREATE TABLE t AS SELECT 1 AS a", "SELECT 1 AS a INTO t", "CREATE MATERIALIZED VIEW t AS SELECT 1 AS a",
                     "CREATE TABLE t (a int) PARTITION BY LIST (a)", "CREATE SCHEMA s CREATE TABLE t (a int)", "CREATE TABLE t (a int) USING gcl",
                     "DO 'BEGIN CREATE TABLE t (a int); END'"):
            with self.subTest(text):
                self.refused("42704", "CREATE EXTENSION gcl", 1, "bare", text, GCL)
        self.assertEqual(["1"], self.on(2, "bare", "CREATE TABLE h (a int) USING heap; CREATE TABLE IF NOT EXISTS h (b int); CREATE TEMP TABLE t (a int);"
                                        "CREATE TEMP TABLE t2 AS SELECT 1 AS a; SELECT * FROM t2", GCL)[-1:])
        # However it is set: by ALTER ROLE and ALTER DATABASE without a warning, by ALTER SYSTEM, by SET.
        self.on(1, "bare", "ALTER DATABASE bare SET default_table_access_method = gcl")
        self.assertEqual(["gcl"], self.on(1, "bare", "SHOW default_table_access_method"))
        self.refused("42704", "CREATE EXTENSION gcl", 1, "bare", "CREATE TABLE t (a int)")
        self.on(1, "bare", "ALTER DATABASE bare RESET default_table_access_method")
        self.refused("42704", "CREATE EXTENSION gcl", 1, "bare", "SET default_table_access_method = gcl; CREATE TABLE t (a int)")
        self.on(1, "bare", "ALTER SYSTEM SET default_table_access_method = gcl")
        self.on(1, "bare", "ALTER SYSTEM RESET default_table_access_method")
        for other in ("gcl2", ""):
            self.refused("22023", "default_table_access_method", 1, "bare", f"SET default_table_access_method = '{other}'")
        # With the extension, and the setting from the start, also for what works in parallel.
        self.on(3, "bare", "CREATE EXTENSION gcl; CREATE TABLE t (a int PRIMARY KEY); INSERT INTO t SELECT generate_series(1, 9); SET force_parallel_mode = on;"
                           "SELECT count(*) FROM t; CREATE TEMP TABLE mine (a int); CREATE TABLE p (a int) PARTITION BY LIST (a)", GCL)
        for k in (1, 2, 3):
            self.assertEqual(["p", "t"], self.on(k, "bare", "SELECT relname FROM pg_class c JOIN pg_am a ON a.oid = relam WHERE amname = 'gcl' AND relkind <> 'i' ORDER BY 1"))
        self.on(1, "bare", "DROP EXTENSION gcl CASCADE")
        self.cluster.everywhere("DROP DATABASE bare")


if __name__ == "__main__":
    unittest.main(verbosity=2)

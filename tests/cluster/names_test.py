"""What a name means may change while a statement waits: it is looked up again, and nothing is done on one primary only."""
import unittest

from harness import Cluster, SqlError

CHANGED = "40001"


class Names(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster(primaries=2))

    def tearDown(self):
        for table in ("t", "t_old", "t_new", "big"):
            self.cluster.sql(1, f"DROP TABLE IF EXISTS {table}")
        first, second = self.cluster.everywhere("SELECT gcl_ddl_fingerprint()")
        self.assertEqual(first, second)

    def swap_while(self, statement, more):
        """Runs `statement`, which waits for local table t until a gcl table has taken its name.  Its error, or None."""
        self.cluster.sql(1, "CREATE TABLE t (id int, v int) USING heap; CREATE TABLE t_new (id int, v int) USING gcl;" + more)
        swapper, waiter = self.cluster.session(1), self.cluster.session(1)
        swapper.run("BEGIN; ALTER TABLE t RENAME TO t_old")
        waiter.send(statement)
        self.assertTrue(waiter.blocked())
        swapper.run("ALTER TABLE t_new RENAME TO t; COMMIT")
        try:
            waiter.result()
            return None
        except SqlError as error:
            return error
        finally:
            waiter.close()
            swapper.close()

    def assert_nothing_here_only(self, statement, more=""):
        error = self.swap_while(statement, more)
        self.assertIsNotNone(error, f"{statement}: done")
        self.assertEqual(CHANGED, error.state, error)

    def test_alter_table(self):
        self.assert_nothing_here_only("ALTER TABLE t ADD COLUMN w int")
        # Once more, it is a statement like any other.
        self.cluster.sql(1, "ALTER TABLE t ADD COLUMN w int")

    def test_constraint(self):
        self.assert_nothing_here_only("ALTER TABLE t ADD CHECK (v > 0)")

    def test_rename(self):
        self.assert_nothing_here_only("ALTER TABLE t RENAME COLUMN v TO w")

    def test_rename_of_the_table(self):
        self.assert_nothing_here_only("ALTER TABLE t RENAME TO u")

    def test_trigger(self):
        self.cluster.sql(1, "CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'")
        self.assert_nothing_here_only("CREATE TRIGGER r AFTER INSERT ON t EXECUTE FUNCTION nothing()")
        self.cluster.sql(1, "DROP FUNCTION nothing()")

    def swap_with_triggers(self, statement):
        self.cluster.sql(1, "CREATE FUNCTION nothing() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'")
        made = "CREATE TRIGGER r AFTER INSERT ON {0} EXECUTE FUNCTION nothing(); ALTER TABLE {0} ADD CONSTRAINT c CHECK (v > 0)"
        self.assert_nothing_here_only(statement, more="; ".join(made.format(table) for table in ("t", "t_new")))
        self.cluster.sql(1, "DROP FUNCTION nothing() CASCADE")

    def test_drop_of_a_trigger(self):
        self.swap_with_triggers("DROP TRIGGER r ON t")

    def test_rename_of_a_trigger(self):
        self.swap_with_triggers("ALTER TRIGGER r ON t RENAME TO q")

    def test_rename_of_a_constraint(self):
        self.swap_with_triggers("ALTER TABLE t RENAME CONSTRAINT c TO d")

    def test_rule(self):
        self.assert_nothing_here_only("CREATE RULE r AS ON DELETE TO t DO INSTEAD NOTHING")

    def test_policy(self):
        self.assert_nothing_here_only("CREATE POLICY r ON t USING (id > 0)")

    def test_statistics(self):
        self.assert_nothing_here_only("CREATE STATISTICS r ON id, v FROM t")

    def test_comment(self):
        self.assert_nothing_here_only("COMMENT ON TABLE t IS 'here'")

    def test_index(self):
        self.assert_nothing_here_only("CREATE INDEX ON t (v)")

    def test_drop(self):
        self.assert_nothing_here_only("DROP TABLE t")

    def test_truncate(self):
        self.assert_nothing_here_only("TRUNCATE t")

    def test_lock_table(self):
        # It changes nothing: so it locks what has the name now, everywhere.
        self.cluster.sql(1, "CREATE TABLE t (id int, v int) USING heap; CREATE TABLE t_new (id int, v int) USING gcl")
        swapper, waiter = self.cluster.session(1), self.cluster.session(1)
        swapper.run("BEGIN; ALTER TABLE t RENAME TO t_old")
        waiter.send("BEGIN; LOCK TABLE t IN EXCLUSIVE MODE")
        self.assertTrue(waiter.blocked())
        swapper.run("ALTER TABLE t_new RENAME TO t; COMMIT")
        waiter.result()
        with self.assertRaises(SqlError) as caught:
            self.cluster.sql(2, "SET lock_timeout = '200ms'; INSERT INTO t VALUES (1, 1)")
        self.assertEqual("55P03", caught.exception.state)
        waiter.run("COMMIT")
        self.cluster.sql(2, "SET lock_timeout = '25s'; INSERT INTO t VALUES (1, 1)")

    def test_waiters_for_a_drop_see_it(self):
        """The DDL lock is given back when this primary knows all that was done, however long the pages take to be freed."""
        self.cluster.sql(1, "CREATE TABLE big (id int PRIMARY KEY, v text) USING gcl;"
                            "INSERT INTO big SELECT i, repeat('x', 100) FROM generate_series(1, 200000) i")
        waiters = [self.cluster.session(1) for _ in range(3)]
        for waiter in waiters:
            self.assertEqual(["200000"], waiter.run("SELECT count(*) FROM big"))
            with self.assertRaises(SqlError) as caught:  # knows the name of the index
                waiter.run("CREATE INDEX big_pkey ON big (v)")
            self.assertEqual("42P07", caught.exception.state)
        dropper = self.cluster.session(1)
        dropper.run("BEGIN; DROP TABLE big")
        for waiter in waiters:
            waiter.send("DROP INDEX big_pkey")
            self.assertTrue(waiter.blocked())
        dropper.run("COMMIT")
        for waiter in waiters:
            with self.assertRaises(SqlError) as caught:
                waiter.result()
            self.assertEqual("42704", caught.exception.state, caught.exception)
            self.assertIn('index "big_pkey" does not exist', str(caught.exception))


if __name__ == "__main__":
    unittest.main(verbosity=2)

"""Objects of a former version of the extension, under the library of this one."""
import re
import subprocess
import unittest

from harness import Cluster, SqlError, eventually

OBJECTS = """SELECT p.oid::regprocedure, p.oid FROM pg_proc p JOIN pg_depend d ON d.objid = p.oid AND d.classid = 'pg_proc'::regclass
             JOIN pg_extension e ON e.oid = d.refobjid AND d.refclassid = 'pg_extension'::regclass WHERE extname = 'gcl' ORDER BY 1"""
VIEWS = "SELECT viewname FROM pg_views WHERE viewname LIKE 'gcl_%' ORDER BY 1"
VERSION = "SELECT extversion FROM pg_extension WHERE extname = 'gcl'"
FIRST = "1.0"


class FormerVersion(unittest.TestCase):
    def setUp(self):
        self.cluster = self.enterContext(Cluster(primaries=2, extension=False))
        self.cluster.sql(1, f"CREATE EXTENSION gcl VERSION '{FIRST}'")
        self.cluster.sql(2, "CREATE TABLE t (id int PRIMARY KEY, v text) USING gcl; INSERT INTO t VALUES (1, 'one')")

    def objects(self):
        first, second = self.cluster.everywhere(OBJECTS)
        self.assertEqual([row.split("|")[0] for row in first], [row.split("|")[0] for row in second])
        return {row.split("(")[0] for row in first}

    def test_its_objects_work_with_the_library_of_this_one(self):
        self.assertEqual(self.cluster.everywhere(VERSION), [[FIRST], [FIRST]])
        self.assertFalse({"gcl_check", "gcl_version"} & self.objects())
        for k in (1, 2):
            for view in self.cluster.sql(k, VIEWS):
                self.cluster.sql(k, f"SELECT count(*) FROM {view}")
            self.assertEqual(self.cluster.sql(k, "SELECT v FROM t"), ["one"])

    def test_a_dump_names_the_extension_and_no_version(self):
        dump = subprocess.run(["pg_dump", self.cluster.dsn(1)], text=True, capture_output=True, check=True).stdout
        self.assertTrue(re.search(r"^CREATE EXTENSION IF NOT EXISTS gcl WITH SCHEMA public;$", dump, re.M))
        self.assertNotIn("gcl_stat", dump)

    def test_a_version_that_does_not_exist_is_refused_everywhere(self):
        self.cluster.sql(1, "DROP TABLE t")
        self.cluster.sql(1, "DROP EXTENSION gcl")
        with self.assertRaises(SqlError) as caught:
            self.cluster.sql(1, "CREATE EXTENSION gcl VERSION '99'")
        self.assertEqual(caught.exception.state, "22023")
        self.assertEqual(self.cluster.everywhere(VERSION), [[], []])
        self.cluster.sql(2, "CREATE EXTENSION gcl")
        self.assertTrue({"gcl_check", "gcl_version"} <= self.objects())
        self.assertEqual(self.cluster.everywhere("SELECT gcl_version()"), self.cluster.everywhere(VERSION))

    def test_an_update_reaches_all_primaries(self):
        two = self.cluster.session(2)
        two.run("BEGIN; ALTER EXTENSION gcl UPDATE; ROLLBACK")
        self.assertEqual(self.cluster.everywhere(VERSION), [[FIRST], [FIRST]])
        two.run("ALTER EXTENSION gcl UPDATE")
        self.assertTrue({"gcl_check", "gcl_version"} <= self.objects())
        self.assertEqual(self.cluster.everywhere("SELECT gcl_version()"), self.cluster.everywhere(VERSION))
        self.assertEqual(self.cluster.everywhere("SELECT * FROM gcl_check('t', true)"), [[], []])
        self.cluster.sql(1, "INSERT INTO t VALUES (2, 'two'); CREATE TABLE u (id int) USING gcl")

    def test_a_primary_that_was_away_catches_up(self):
        self.cluster.stop(2)
        self.cluster.sql(1, "ALTER EXTENSION gcl UPDATE")
        self.cluster.start(2)
        eventually(lambda: self.cluster.sql(2, VERSION) == self.cluster.sql(1, VERSION))
        self.assertEqual(self.cluster.sql(2, "SELECT * FROM gcl_check('t', true)"), [])


if __name__ == "__main__":
    unittest.main(verbosity=2)

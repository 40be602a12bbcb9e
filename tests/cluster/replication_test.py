"""Logical replication into a gcl table, from a heap table of another database, while others change the same rows."""
import unittest

from harness import Cluster, Session, eventually


class Replication(unittest.TestCase):
    def setUp(self):
        self.cluster = self.enterContext(Cluster(primaries=2, settings=("wal_level=logical",)))
        self.cluster.sql(1, "CREATE DATABASE source")
        dsn = self.cluster.dsn(1) + " dbname=source"  # the last one counts
        self.source = Session(dsn)
        self.addCleanup(self.source.close)
        self.source.run("CREATE TABLE t (id int PRIMARY KEY, note text); INSERT INTO t SELECT i, '' FROM generate_series(1, 100) i")
        self.source.run("CREATE PUBLICATION p FOR TABLE t")
        self.source.run("SELECT pg_create_logical_replication_slot('s', 'pgoutput')")
        self.cluster.sql(1, "CREATE TABLE t (id int PRIMARY KEY, note text, v int DEFAULT 0, wide text) USING gcl; ALTER TABLE t ALTER wide SET STORAGE PLAIN;"
                            "INSERT INTO t SELECT i, '', 0, repeat('w', 700) FROM generate_series(1, 100) i")
        self.cluster.sql(1, f"CREATE SUBSCRIPTION s CONNECTION '{dsn}' PUBLICATION p"
                            " WITH (create_slot = false, slot_name = 's', copy_data = false)")
        self.addCleanup(self.cluster.sql, 1, "DROP SUBSCRIPTION s")

    def replicated(self):
        """Waits until all that has been committed in the source is applied."""
        wanted = self.source.one("SELECT pg_current_wal_lsn()")
        eventually(lambda: self.cluster.sql(1, f"SELECT 1 FROM pg_stat_subscription WHERE latest_end_lsn >= '{wanted}'"), 60)

    def test_what_is_changed_elsewhere_meanwhile_is_found(self):
        other = self.cluster.session(2)
        self.addCleanup(other.close)
        for row in range(1, 21):
            other.run(f"BEGIN; UPDATE t SET v = v + 1 WHERE id = {row}")
            self.source.run(f"UPDATE t SET note = 'new' WHERE id = {row}")
            eventually(lambda: self.cluster.sql(1, "SELECT 1 FROM pg_locks WHERE NOT granted"))
            # The row moves to a page that has room, with an index entry that was not there when the waiting worker looked.
            other.run(f"UPDATE t SET wide = repeat('v', 5000) WHERE id = {row}")
            other.run("ROLLBACK" if row % 4 == 0 else "COMMIT")
        self.source.run("DELETE FROM t WHERE id > 90; INSERT INTO t VALUES (101, 'more')")
        self.replicated()
        first, second = self.cluster.everywhere("SELECT count(*), count(*) FILTER (WHERE note = 'new'), sum(v), max(id) FROM t")
        self.assertEqual(["91|20|15|101"], first)
        self.assertEqual(first, second)


if __name__ == "__main__":
    unittest.main(verbosity=2)

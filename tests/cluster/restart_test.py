"""A clean stop writes the pool to a file; start finds everything again, also when tmpfs was emptied."""
import glob
import os
import shutil
import unittest

from harness import Cluster


class Restart(unittest.TestCase):
    def setUp(self):
        self.cluster = self.enterContext(Cluster(primaries=3))
        self.cluster.sql(1, "CREATE TABLE t (id int PRIMARY KEY, v text) USING gcl")
        self.cluster.sql(2, "INSERT INTO t SELECT i, 'row ' || i FROM generate_series(1, 5000) i")
        self.cluster.sql(3, "UPDATE t SET v = 'changed' WHERE id % 10 = 0")

    def assert_all_there(self):
        for answer in self.cluster.everywhere(
                "SET enable_seqscan = off; SELECT count(*), count(*) FILTER (WHERE v = 'changed'), sum(id) FROM t WHERE id > 0"):
            self.assertEqual(["5000|500|12502500"], answer)
        for answer in self.cluster.everywhere("SELECT v FROM t WHERE id IN (7, 10) ORDER BY id"):
            self.assertEqual(["row 7", "changed"], answer)

    def test_stop_and_start(self):
        self.assertIn("saved", self.cluster.stop().stdout)
        self.cluster.start()
        self.assert_all_there()
        self.cluster.sql(1, "INSERT INTO t VALUES (5001, 'after')")
        self.assertEqual([["5001"]] * 3, self.cluster.everywhere("SELECT count(*) FROM t"))

    def test_start_after_tmpfs_was_emptied(self):
        self.cluster.stop()
        for entry in glob.glob(self.cluster.pool_dir() + "/*"):
            os.remove(entry)
        shutil.rmtree(self.cluster.pool_dir())
        self.cluster.start()
        self.assert_all_there()
        self.cluster.stop()
        self.cluster.start()
        self.assert_all_there()

    def test_primaries_leave_and_come_back_one_by_one(self):
        for k in (2, 3, 1):
            self.cluster.stop(k)
            other = 1 if k != 1 else 2
            self.cluster.sql(other, f"UPDATE t SET v = 'without {k}' WHERE id = {k}")
            self.cluster.start(k)
            self.assertEqual([f"without {k}"], self.cluster.sql(k, f"SELECT v FROM t WHERE id = {k}"))
        self.assertEqual([["5000"]] * 3, self.cluster.everywhere("SELECT count(*) FROM t"))

# Fills the WAL so that its last record ends with a page: the insert position is then behind the next page's header.
TO_A_PAGE_S_END = """DO $$
DECLARE at bigint; after bigint; overhead bigint := 48; room bigint;
BEGIN
  FOR i IN 1..200 LOOP
    at := pg_current_wal_insert_lsn() - '0/0';
    EXIT WHEN at % 8192 = 24 AND i > 1;
    room := 8192 - at % 8192;
    IF room < overhead + 8 THEN room := room + 8192 - 24; END IF;
    PERFORM pg_logical_emit_message(false, 'x', repeat('x', (room - overhead)::int));
    after := pg_current_wal_insert_lsn() - '0/0';
    IF (after - 1) / 8192 = at / 8192 THEN overhead := overhead - 1;   -- too short
    ELSIF after % 8192 <> 24 THEN overhead := overhead + 1; END IF;    -- too long
  END LOOP;
END $$"""


class WalPageEnd(unittest.TestCase):
    def test_a_clean_stop_flushes_a_log_that_ends_with_a_page(self):
        with Cluster(primaries=1, settings=("autovacuum=off", "checkpoint_timeout=1d", "bgwriter_delay=10s")) as cluster:
            cluster.sql(1, "CREATE TABLE t (v int) USING gcl")
            for round_ in range(3):
                cluster.sql(1, f"INSERT INTO t VALUES ({round_})")
                session = cluster.session(1)
                for _ in range(5):  # the server logs its running transactions now and then: then once more
                    session.run(TO_A_PAGE_S_END)
                    behind = session.one("SELECT (pg_current_wal_insert_lsn() - '0/0') % 8192")
                    if behind == "24":
                        break
                self.assertEqual("24", behind)
                self.assertIn("saved", cluster.stop().stdout)
                cluster.start()
            self.assertEqual(["3"], cluster.sql(1, "SELECT count(*) FROM t"))


if __name__ == "__main__":
    unittest.main(verbosity=2)

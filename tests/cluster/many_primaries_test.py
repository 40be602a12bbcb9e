"""A table to which many primaries have added rows: each numbers its blocks from a place of its own, so the numbers are as high
as those of a table of gigabytes."""
import threading
import unittest

from harness import Cluster, eventually

PRIMARIES = 14  # 10,240 block numbers each: the last one's are beyond the first gigabyte
GIGABYTE = 131072


class ManyPrimaries(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster(primaries=PRIMARIES, settings=(
            "shared_buffers=16MB", "max_connections=20", "autovacuum_analyze_threshold=0", "effective_io_concurrency=10")))
        cls.one = cls.cluster.session(1)
        # Only on the primary whose autovacuum is tested: all of them every second would keep the machine busy.
        cls.one.run("ALTER SYSTEM SET autovacuum_naptime = 1")
        cls.one.run("SELECT pg_reload_conf()")
        cls.one.run("CREATE TABLE t (id int PRIMARY KEY, v int) USING gcl; CREATE INDEX ON t (v)")
        inserts = [threading.Thread(target=cls.cluster.sql, args=(k, f"INSERT INTO t VALUES ({k}, {k % 3})"))
                   for k in range(1, PRIMARIES + 1)]
        for insert in inserts:
            insert.start()
        for insert in inserts:
            insert.join()

    def test_has_high_blocks(self):
        self.assertEqual([str(PRIMARIES)], self.one.run("SELECT count(*) FROM t"))
        self.assertEqual(["t"], self.one.run(f"SELECT max((ctid::text::point)[0]) >= {GIGABYTE} FROM t"))

    def test_is_analyzed(self):
        analyzes = "SELECT {}analyze_count FROM pg_stat_user_tables WHERE relname = 't'"
        before = int(self.one.one(analyzes.format("auto")))
        self.one.run("UPDATE t SET v = v")
        eventually(lambda: int(self.one.one(analyzes.format("auto"))) > before, 60)
        self.one.run("SET maintenance_io_concurrency = 100; ANALYZE t")
        self.assertEqual(["t"], self.one.run(f"SELECT relpages > {GIGABYTE} FROM pg_class WHERE relname = 't'"))

    def test_is_read_by_bitmap_scans(self):
        self.one.run("SET enable_seqscan = off; SET enable_indexscan = off; SET enable_indexonlyscan = off; SET max_parallel_workers_per_gather = 0")
        count = "SELECT count(*) FROM t WHERE v < 3"
        self.assertTrue(any("Bitmap Heap Scan" in line for line in self.one.run("EXPLAIN " + count)))
        self.assertEqual(str(PRIMARIES), self.one.one(count))
        self.one.run("SET parallel_setup_cost = 0; SET parallel_tuple_cost = 0; SET min_parallel_table_scan_size = 0; "
                     "SET max_parallel_workers_per_gather = 2")
        self.assertEqual(str(PRIMARIES), self.one.one(count))

    def test_is_read_by_the_subplans_of_a_recheck(self):
        two = self.cluster.session(2)
        self.one.run("CREATE TABLE other (id int, seen int) USING gcl; INSERT INTO other VALUES (1, 0)")
        two.run("SET enable_seqscan = off; SET enable_indexscan = off; SET enable_indexonlyscan = off")
        self.one.run("BEGIN; UPDATE other SET seen = -1")
        two.send("UPDATE other SET seen = (SELECT count(*) FROM t WHERE v < 3 + other.id)")
        self.assertTrue(two.blocked())
        self.one.run("COMMIT")
        two.result()
        self.assertEqual(str(PRIMARIES), self.one.one("SELECT seen FROM other"))


if __name__ == "__main__":
    unittest.main(verbosity=2)

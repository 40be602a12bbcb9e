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

    def pool_dir(self):
        with open(f"{self.cluster.dir}/cluster.conf", encoding="utf-8") as f:
            values = dict(line.strip().split("=", 1) for line in f if "=" in line)
        return f"{values['memory_dir']}/gcl-{values['id']}"

    def test_stop_and_start(self):
        self.assertIn("saved", self.cluster.stop().stdout)
        self.cluster.start()
        self.assert_all_there()
        self.cluster.sql(1, "INSERT INTO t VALUES (5001, 'after')")
        self.assertEqual([["5001"]] * 3, self.cluster.everywhere("SELECT count(*) FROM t"))

    def test_start_after_tmpfs_was_emptied(self):
        self.cluster.stop()
        for entry in glob.glob(self.pool_dir() + "/*"):
            os.remove(entry)
        shutil.rmtree(self.pool_dir())
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


if __name__ == "__main__":
    unittest.main(verbosity=2)

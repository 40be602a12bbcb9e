"""Logs of the format before today's: memory is lost behind them, they go on in today's format, and a backup has them
(log.reader-of-before, log.format-per-record)."""
import os
import shutil
import unittest

import deaths
from harness import Cluster, new_dir, together
from installation import former_installation
from restored import Restored

PRIMARIES = (1, 2, 3)
WHOLE = "the pool is whole again"
ROWS = "SELECT count(*), sum(n), sum(length(v)) FROM t; SET enable_seqscan = off; SELECT count(*) FROM t WHERE v LIKE 'row 1%'"


class FormerLog(unittest.TestCase):
    def setUp(self):
        self.cluster = self.enterContext(Cluster(primaries=len(PRIMARIES), settings=("gcl.checkpoint_timeout=0",), spare=len(PRIMARIES)))

    def change(self, k, first):
        """All kinds of steps: rows that move in their pages, splits of index pages, new pages."""
        self.cluster.sql(k, f"""INSERT INTO t SELECT i, i, 'row ' || i || repeat(' ', i % 300) FROM generate_series({first}, {first} + 1999) i;
            DELETE FROM t WHERE id >= {first} AND id % 3 = 0; VACUUM t;
            UPDATE t SET n = n + 1, v = v || 'x' WHERE id >= {first} AND id % 5 = 0""")

    def newest(self, k):
        return self.cluster.ctl("inspect", "wal", self.cluster.dir, "--node", str(k), "--last", "1").stdout

    def lose(self):
        self.assertEqual([], together([lambda k=k: self.cluster.kill_all(k) for k in PRIMARIES]))
        shutil.rmtree(self.cluster.pool_dir())

    def start(self):
        self.assertIn(WHOLE, self.cluster.ctl("start", self.cluster.dir).stdout)

    def assert_everywhere(self, rows):
        for answer in self.cluster.everywhere(ROWS):
            self.assertEqual(rows, answer)
        deaths.assert_in_order(self, self.cluster, "t")

    def test_it_is_read(self):
        c = self.cluster
        former_installation(self).ctl("upgrade", c.dir)
        c.stop()  # the copy has nothing yet
        c.start()
        c.sql(1, "CREATE TABLE t (id int PRIMARY KEY, n int, v text) USING gcl; CREATE INDEX ON t (v)")
        for k in PRIMARIES:
            self.change(k, k * 10000)
            self.assertIn("format 3", self.newest(k))
        c.kill_all(2)  # the journal has its ring
        c.start(2)
        place = new_dir()
        self.addCleanup(shutil.rmtree, place, ignore_errors=True)
        os.chmod(place, 0o755)
        backup, of_backup = f"{place}/backup", c.sql(1, ROWS)
        c.ctl("backup", c.dir, backup)
        self.change(2, 40000)
        rows = c.sql(1, ROWS)
        # A crash, and the library is another one when the cluster starts again.
        self.lose()
        c.ctl("upgrade", c.dir)
        self.start()
        self.assert_everywhere(rows)
        # The logs go on.
        for k in PRIMARIES:
            self.change(k, 40000 + k * 10000)
            self.assertNotIn("format 3", self.newest(k))
        rows = c.sql(2, ROWS)
        self.lose()
        self.start()
        self.assert_everywhere(rows)
        c.ctl("checkpoint", c.dir)
        self.change(1, 90000)
        rows = c.sql(3, ROWS)
        self.lose()
        self.start()
        self.assert_everywhere(rows)
        with Restored(c, backup) as other:
            self.assertEqual([of_backup] * 3, other.everywhere(ROWS))
            deaths.assert_in_order(self, other, "t")


if __name__ == "__main__":
    unittest.main(verbosity=2)

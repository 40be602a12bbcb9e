"""Seven workloads on three primaries, at all levels: what each has read and written is judged by what its level forbids.

LEVEL: of these alone, apart by commas.  TRANSACTIONS: of each level, over all workloads; SECONDS: of each round, whatever has been done by then.  GCL_SEED.  Prints how many were committed and how fast, and whether the history was
one that SERIALIZABLE forbids.
"""
import collections
import importlib
import os
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "cluster"))
from client import WORKERS  # noqa: E402
from dependencies import LEVELS  # noqa: E402
from harness import SEED, Cluster  # noqa: E402
from libpq import Connection  # noqa: E402
from workers import Workers  # noqa: E402

WORKLOADS = ("lists", "bank", "skew", "fork", "phantoms", "orphans", "partitions")
TRANSACTIONS = int(os.environ.get("TRANSACTIONS", 3500))
ROUND = 5000  # transactions that are judged together: a bound for the judge's memory and time
SECONDS = float(os.environ.get("SECONDS", 2.5))
# Where a history that SERIALIZABLE forbids is to be seen, in so many transactions: a workload that does not meet it proves nothing.
SHOWS = {("skew", "REPEATABLE READ"), ("phantoms", "REPEATABLE READ"), ("lists", "READ COMMITTED"), ("lists", "REPEATABLE READ")}
SHOWS_IN = 2000


class Histories(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = cls.enterClassContext(Cluster(primaries=3))
        cls.workers = cls.enterClassContext(Workers([cls.cluster.dsn(k) for k in (1, 2, 3)], WORKERS))

    def setUp(self):
        self.counts, self.took, self.anomaly = collections.Counter(), 0.0, None

    def one_round(self, workload, level, count, seed):
        module = importlib.import_module(workload)
        self.cluster.sql(1, module.TABLES)
        began = time.monotonic()
        notes = self.workers.play(workload, level, count, SECONDS, seed)
        self.took += time.monotonic() - began
        look = Connection(self.cluster.dsn(1))
        final = look.run(module.FINAL)
        look.close()
        wrong = []
        self.anomaly = module.judge(notes, final, level, wrong) or self.anomaly
        self.assertEqual([], wrong[:10])
        self.counts.update("committed" if note.committed else note.why_not or "wanted" for note in notes)

    def levels_of(self, workload):
        """At each level as many rounds as it takes."""
        for level in os.environ.get("LEVEL", ",".join(LEVELS)).split(","):
            with self.subTest(level=level):
                self.setUp()
                left, rounds = max(TRANSACTIONS // len(WORKLOADS), 1), 0
                while left > 0:
                    rounds += 1
                    self.one_round(workload, level, min(left, ROUND), f"{SEED}/{rounds}")
                    left -= ROUND
                total = self.counts.total()
                failed = {state: count for state, count in sorted(self.counts.items()) if state != "committed"}
                print(f"{workload:10} {level:15} {total:7} transactions, {self.counts['committed']:7} committed, rolled back {failed},"
                      f" {total / self.took:.0f}/s{', not serializable' if self.anomaly else ''}", flush=True)
                self.assertGreater(self.counts["committed"], total / 20)
                if (workload, level) in SHOWS and total >= SHOWS_IN:
                    self.assertIsNotNone(self.anomaly)


for name in WORKLOADS:
    setattr(Histories, f"test_{name}", lambda self, name=name: self.levels_of(name))


if __name__ == "__main__":
    unittest.main(verbosity=2)

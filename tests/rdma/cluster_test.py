"""Three primaries and a memory node over RDMA, in the guest: they share tables, one dies under load, and comes back.

What other cluster tests look at is the same over each transport; this is that queue pairs carry it, and that a dead primary has none.
"""
import pathlib
import sys
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "cluster"))

import deaths  # noqa: E402
from deaths import BANK, BankClient  # noqa: E402
from harness import TRANSPORT, Cluster  # noqa: E402

PRIMARIES = (1, 2, 3)
ALL_WORK_MAX = 180.0  # seconds, in a guest that is emulated


class OverVerbs(unittest.TestCase):
    def setUp(self):
        self.assertEqual("verbs", TRANSPORT)
        self.cluster = self.enterContext(Cluster(primaries=3, started=(1, 2, 3)))
        self.cluster.sql(1, BANK)
        self.clients = [BankClient(self.cluster, k, f"bank {k}") for k in PRIMARIES]

    def all_work(self, clients):
        deaths.assert_all_work(clients, time.monotonic(), ALL_WORK_MAX)

    def test_a_primary_dies_and_comes_back(self):
        for client in self.clients:
            client.thread.start()
        try:
            self.all_work(self.clients)
            self.cluster.kill_all(3)
            self.all_work(self.clients[:2])
            self.cluster.start(3)
            self.all_work(self.clients)
            self.cluster.sql(2, "ALTER TABLE acct ADD seen int DEFAULT 1")
            self.all_work(self.clients)
        finally:
            for client in self.clients:
                client.ended.set()
        deaths.stop(self, self.clients)
        print(f"commits: {[len(client.told) for client in self.clients]}", flush=True)
        deaths.assert_bank_kept(self, self.cluster, self.clients, "bank")
        self.assertEqual([["60"]] * 3, self.cluster.everywhere("SELECT sum(seen) FROM acct"))


if __name__ == "__main__":
    unittest.main(verbosity=2)

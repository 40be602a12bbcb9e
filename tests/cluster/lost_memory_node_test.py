"""Over tcp: the daemon of a memory node dies, or stands still, while three primaries work with three memory nodes."""
import contextlib
import os
import signal
import time
import unittest

import deaths
from deaths import BANK, BankClient
from harness import Cluster, SqlError, eventually, has_memory


class LostMemoryNode(unittest.TestCase):
    """A memory node's daemon dies under load: its file is there, and the primaries go on when it is served again."""

    def setUp(self):
        self.cluster = self.enterContext(Cluster(primaries=3, cache="8MB", memory_nodes=3))
        self.cluster.sql(1, BANK)
        self.clients = [BankClient(self.cluster, k, f"bank {k}.{i}") for k in (1, 2, 3) for i in range(2)]
        for client in self.clients:
            client.thread.start()
        deaths.assert_all_work(self.clients, time.monotonic())

    def process(self, number):
        with open(f"{self.cluster.dir}/memory{number}/pid", encoding="ascii") as file:
            return int(file.read())

    def test_comes_back(self):
        for number in (1, 2, 0):
            os.kill(self.process(number), signal.SIGKILL)
            eventually(lambda n=number: not has_memory(self.process(n)))
            status = self.cluster.ctl("status", self.cluster.dir, check=False).stdout
            self.assertRegex(status, rf"memory {number}  +down" if number else r"memory .* down")
            time.sleep(1)
            self.cluster.start()
            deaths.assert_all_work(self.clients, time.monotonic())
        deaths.stop(self, self.clients)
        deaths.assert_bank_kept(self, self.cluster, self.clients, "bank")
        deaths.assert_in_order(self, self.cluster, "acct", "hist")

    def test_one_that_stands_still_holds_up_a_death_and_no_longer(self):
        os.kill(self.process(1), signal.SIGSTOP)
        try:
            time.sleep(0.2)
            self.cluster.kill_all(3)
            time.sleep(3)
            self.assertNotEqual(["dead"], self.state(3), "what it sent before may still be carried out")
        finally:
            os.kill(self.process(1), signal.SIGCONT)
        self.cluster.start()
        deaths.assert_all_work(self.clients, time.monotonic())
        deaths.stop(self, self.clients)
        deaths.assert_bank_kept(self, self.cluster, self.clients, "bank")

    def state(self, k):
        with contextlib.suppress(SqlError):  # its primaries may have been cut off, too
            return self.cluster.sql(1, f"SELECT state FROM gcl_stat_cluster WHERE node = {k}")
        return []


if __name__ == "__main__":
    unittest.main(verbosity=2)

"""Over tcp: the daemon of a memory node dies, or stands still, while three primaries work with three memory nodes."""
import contextlib
import ctypes
import glob
import os
import re
import signal
import time
import unittest

import deaths
from deaths import BANK, BankClient
from harness import Cluster, SqlError, eventually, has_memory, together


IS_DEAD = r": node 3 \(incarnation \d+\) is dead:"


def process_of(cluster, number):
    with open(f"{cluster.dir}/memory{number}/pid", encoding="ascii") as file:
        return int(file.read())


@contextlib.contextmanager
def parent_of_orphans():
    """Is for the time what the first process of many a container is: it becomes their parent, and waits for none."""
    set_child_subreaper = 36
    assert ctypes.CDLL(None).prctl(set_child_subreaper, 1, 0, 0, 0) == 0
    yield
    assert ctypes.CDLL(None).prctl(set_child_subreaper, 0, 0, 0, 0) == 0
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG) != (0, 0):
            pass


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
        return process_of(self.cluster, number)

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
            self.cluster.kill_all(3)
            eventually(lambda: "waits to be certain that node 3 is dead for memory node 1" in self.memory_log())
            self.assertNotRegex(self.memory_log(), IS_DEAD, "what it sent before may still be carried out")
            eventually(lambda: self.state(3) != [])
            self.assertEqual(["live"], self.state(3))
        finally:
            os.kill(self.process(1), signal.SIGCONT)
        eventually(lambda: re.search(IS_DEAD, self.memory_log()))
        self.cluster.start()
        deaths.assert_all_work(self.clients, time.monotonic())
        deaths.stop(self, self.clients)
        deaths.assert_bank_kept(self, self.cluster, self.clients, "bank")

    def memory_log(self):
        with open(f"{self.cluster.dir}/memory0/log", encoding="utf-8", errors="replace") as log:
            return log.read()

    def state(self, k):
        with contextlib.suppress(SqlError):  # its primaries may have been cut off, too
            return self.cluster.sql(1, f"SELECT state FROM gcl_stat_cluster WHERE node = {k}")
        return []


class Gone(unittest.TestCase):
    def test_one_that_cannot_be_started_is_told(self):
        """Its file is gone, and memory node 0 still knows where it was."""
        cluster = self.enterContext(Cluster(primaries=2, memory_nodes=2, extension=False))
        cluster.holds_nothing = False
        self.assertEqual(0, cluster.ctl("status", cluster.dir, check=False).returncode)
        os.kill(process_of(cluster, 1), signal.SIGKILL)
        eventually(lambda: not has_memory(process_of(cluster, 1)))
        done = cluster.ctl("status", cluster.dir, check=False)
        self.assertRegex(done.stdout, "memory 1  +down")
        self.assertEqual(1, done.returncode, done.stdout)
        os.remove(f"{cluster.pool_dir()}/pool.mem1")
        done = cluster.ctl("start", cluster.dir, check=False)
        self.assertEqual(1, done.returncode, done.stdout)
        self.assertRegex(done.stderr, "memory node 1 did not start: .*/pool.mem1 is gone, and the pool is in use")


class StartedTogether(unittest.TestCase):
    """Each primary by a gclctl of its own: memory nodes are started once, and stopped with the last primary."""

    def test_no_daemon_is_left(self):
        cluster = self.enterContext(Cluster(primaries=3, memory_nodes=2, extension=False))
        for _ in range(3):
            cluster.stop()
            self.assertEqual([], self.daemons(cluster))
            self.assertEqual([], together([lambda k=k: cluster.start(k) for k in (1, 2, 3)]))
            self.assertCountEqual([process_of(cluster, k) for k in (0, 1)], self.daemons(cluster))

    def test_one_that_ended_and_nobody_waited_for_is_down(self):
        self.enterContext(parent_of_orphans())
        cluster = self.enterContext(Cluster(primaries=1, memory_nodes=2, extension=False))
        postmaster = cluster.postmaster(1)
        cluster.kill_all(1)
        os.waitpid(postmaster, 0)  # PostgreSQL itself would take it for alive
        for number in (0, 1):
            os.kill(process_of(cluster, number), signal.SIGKILL)
            eventually(lambda n=number: not has_memory(process_of(cluster, n)))
            self.assertTrue(os.path.exists(f"/proc/{process_of(cluster, number)}"))
        self.assertRegex(cluster.ctl("status", cluster.dir, check=False).stdout, r"memory .* down")
        cluster.start()
        self.assertCountEqual([process_of(cluster, k) for k in (0, 1)], self.daemons(cluster))

    @staticmethod
    def daemons(cluster):
        found = []
        for path in glob.glob("/proc/[0-9]*/cmdline"):
            with contextlib.suppress(OSError), open(path, "rb") as file:
                words = file.read().split(b"\0")
                if words[0].endswith(b"gcl_memnode") and f"{cluster.pool_dir()}/".encode() in words[1]:
                    found.append(int(path.split("/")[2]))
        return found


if __name__ == "__main__":
    unittest.main(verbosity=2)
